"""An upstream that costs next to nothing: ``python mock_upstream.py PORT`` answers every POST at once.

A request that says ``"stream":true`` gets `CHUNKS` events, each in a write of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys

CHUNKS = 1_000
_USAGE = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
_CHOICE = {"index": 0, "message": {"role": "assistant", "content": "Yes, it did."}, "finish_reason": "stop"}
_ANSWER = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [_CHOICE]}
BODY = json.dumps({**_ANSWER, "usage": _USAGE}).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)
_DELTA = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
# Each differs: LiteLLM takes a hundred equal ones for a model that has got stuck.
_EVENTS = [{**_DELTA, "choices": [{"index": 0, "delta": {"content": f"word {n} "}}]} for n in range(CHUNKS)]
EVENTS = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in _EVENTS]
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Answering(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._seen = b""

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, found, rest = self._seen.partition(b"\r\n\r\n")
        if not found:
            return
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        length = next((int(value) for name, _, value in lines if name.lower() == b"content-length"), 0)
        if len(rest) < length:
            return
        self._seen = rest[length:]
        if b'"stream":true' in rest.replace(b" ", b"")[-4_000:]:
            self._streaming = asyncio.ensure_future(self._stream())
        else:
            self._transport.write(HEAD + BODY)  # type: ignore[attr-defined]

    async def _stream(self) -> None:
        write = self._transport.write  # type: ignore[attr-defined]
        write(STREAM_HEAD)
        for event in EVENTS:
            write(b"%x\r\n" % len(event) + event + b"\r\n")
            await asyncio.sleep(0)
        write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
