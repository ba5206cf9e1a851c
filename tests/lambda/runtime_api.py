"""A small Lambda runtime API, and what a front door sees of a streamed answer, chunk by chunk."""

import base64
import json
import queue
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 20.0
DELIMITER = b"\x00" * 8


@dataclass
class Answer:
    """What a runtime has said about one invocation so far. `ended` is set once it can say no more."""

    event: Any
    deadline_ms: int
    trace_id: str | None
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    chunks: list[bytes] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    trailers: dict[str, str] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    cut_after: int | None = None
    ended: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait(self) -> "Answer":
        with self.changed:
            assert self.changed.wait_for(lambda: self.ended, PATIENCE), f"no end, only {self.chunks}"
        return self

    def wait_for_body(self, text: bytes) -> None:
        """Waits until the body holds `text`, whether or not the answer has ended."""
        with self.changed:
            assert self.changed.wait_for(lambda: text in self.body, PATIENCE), f"only {self.chunks}"

    def add(self, **changes: Any) -> None:
        with self.changed:
            for name, value in changes.items():
                setattr(self, name, value)
            self.changed.notify_all()

    @property
    def prelude(self) -> dict[str, Any]:
        return json.loads(b"".join(self.chunks).partition(DELIMITER)[0])

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks).partition(DELIMITER)[2]

    @property
    def streamed_error(self) -> dict[str, Any]:
        return json.loads(base64.b64decode(self.trailers["lambda-runtime-function-error-body"]))


class RuntimeApi:
    """Hands out invocations one at a time, and keeps what comes back."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[Answer | None] = queue.Queue()
        self.answers: dict[str, Answer] = {}
        self.init_errors: queue.Queue[dict[str, Any]] = queue.Queue()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def invoke(
        self,
        event: Any,
        *,
        seconds: float = 60.0,
        trace_id: str | None = None,
        cut_after: int | None = None,
    ) -> Answer:
        """Offers an event to the runtime; `cut_after` chunks the answer's connection is cut."""
        deadline = int((time.time() + seconds) * 1000)
        answer = Answer(event=event, deadline_ms=deadline, trace_id=trace_id, cut_after=cut_after)
        self.answers[answer.request_id] = answer
        self.waiting.put(answer)
        return answer

    def close(self) -> None:
        """Ends the runtime, too: its next poll is refused."""
        self.waiting.put(None)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _handler(api) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or every small answer waits 40 ms for an ACK

            def do_GET(self) -> None:
                assert self.path == "/2018-06-01/runtime/invocation/next"
                answer = api.waiting.get()
                if answer is None:
                    self.reply(410)
                    return
                headers = {
                    "Lambda-Runtime-Aws-Request-Id": answer.request_id,
                    "Lambda-Runtime-Deadline-Ms": str(answer.deadline_ms),
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
                }
                if answer.trace_id:
                    headers["Lambda-Runtime-Trace-Id"] = answer.trace_id
                self.reply(200, json.dumps(answer.event).encode(), headers)

            def do_POST(self) -> None:
                *_, subject, verb = self.path.split("/")
                if subject == "init":
                    api.init_errors.put(json.loads(self.whole_body()))
                elif verb == "error":
                    api.answers[subject].add(error=json.loads(self.whole_body()), ended=True)
                else:
                    self.take_response(api.answers[subject])
                self.reply(202, b'{"status": "OK"}')

            def take_response(self, answer: Answer) -> None:
                answer.add(headers={name.lower(): value for name, value in self.headers.items()})
                if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                    answer.add(chunks=[DELIMITER + self.whole_body()], ended=True)
                    return
                while size := int(self.rfile.readline(), 16):
                    answer.add(chunks=[*answer.chunks, self.rfile.read(size)])
                    assert self.rfile.readline() == b"\r\n"
                    if answer.cut_after == len(answer.chunks):
                        self.connection.close()
                        raise ConnectionAbortedError
                trailers = {}
                while line := self.rfile.readline().strip():
                    name, _, value = line.decode().partition(": ")
                    trailers[name.lower()] = value
                answer.add(trailers=trailers, ended=True)

            def whole_body(self) -> bytes:
                return self.rfile.read(int(self.headers["Content-Length"]))

            def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        return Handler
