"""A model provider on loopback that answers when it is told to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 20.0
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello 你好"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22},
}


def event(text: str) -> bytes:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    return f"data: {json.dumps(chunk)}\n\n".encode()


class Provider:
    """`gate` holds back everything after the first event of a stream, and the whole of an unstreamed answer."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.bodies: list[bytes] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def _handler(provider) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.bodies.append(body)
                if json.loads(body).get("stream"):
                    self.stream()
                else:
                    provider.gate.wait(PATIENCE)
                    self.start("application/json")
                    self.wfile.write(json.dumps(ANSWER).encode())

            def stream(self) -> None:
                self.start("text/event-stream")
                self.wfile.write(event("one"))
                provider.gate.wait(PATIENCE)
                self.wfile.write(event("two") + b"data: [DONE]\n\n")

            def start(self, content_type: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", content_type)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        return Handler


@contextmanager
def running_provider() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.gate.set()
        provider.server.shutdown()
        provider.server.server_close()
        thread.join()
