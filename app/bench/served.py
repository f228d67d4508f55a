"""Real clients of the local server, for pictures and tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any
from urllib.parse import urlsplit

_PATH = "/chat/completions"


async def free_port() -> int:
    """Returns a free port."""
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    server.close()
    await server.wait_closed()
    return port


class Client:
    """One streaming request to `address` (with `/v1`), sent at once. `raw`: the received bytes.

    `called`: the Host header; empty: the address.
    """

    def __init__(
        self,
        address: str,
        agent: str,
        question: str,
        tokens: int = 64,
        *,
        headers: str = "",
        called: str = "",
        **fields: Any,
    ) -> None:
        self._address = urlsplit(address)
        messages = [{"role": "user", "content": question}]
        asked = {"messages": messages, "stream": True, "max_tokens": tokens, **fields}
        self._body = json.dumps(asked).encode()
        host = called or self._address.netloc
        self._head = f"host: {host}\r\nuser-agent: {agent}\r\n{headers}"
        self.raw = b""
        self._writer: asyncio.StreamWriter | None = None
        self._task = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        reader, self._writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        head = (
            f"POST {self._address.path}{_PATH} HTTP/1.1\r\n"
            f"content-type: application/json\r\ncontent-length: {len(self._body)}\r\n"
            f"connection: close\r\n{self._head}\r\n"
        )
        try:
            self._writer.write(head.encode() + self._body)
            while piece := await reader.read(65536):
                self.raw += piece
        except ConnectionError:
            pass
        finally:
            self._writer.close()

    @property
    def status(self) -> int:
        """0 until there is one."""
        return int(self.raw.split(b" ", 2)[1]) if self.raw else 0

    @property
    def events(self) -> list[Any]:
        """The events received."""
        lines = self.raw.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")[:-1]
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    @property
    def text(self) -> str:
        """The text received."""
        choices = [choice for event in self.events for choice in event.get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    @property
    def error(self) -> str:
        """The code of the error event, or of the refusal; empty if there is none."""
        for event in self.events:
            if "error" in event:
                return str(event["error"]["code"])
        if self.status >= 400:
            return str(json.loads(self.raw.partition(b"\r\n\r\n")[2])["error"]["code"])
        return ""

    @property
    def is_whole(self) -> bool:
        """Whether the answer is complete."""
        return b"data: [DONE]" in self.raw

    @property
    def done(self) -> bool:
        """The line is closed."""
        return self._task.done()

    async def ended(self) -> None:
        """Waits until the connection closes. Raises `OSError` if nothing listens."""
        await self._task

    async def leave(self) -> None:
        """Go away, in the middle of it or not."""
        if self._writer is not None:
            self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._task
