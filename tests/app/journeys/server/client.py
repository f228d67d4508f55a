"""A client of the window's server, raw HTTP on the loop that the window runs on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from app.shell.window import MainWindow
from core.settings import assign_all
from tests.app.stage import until

CHAT = "/v1/chat/completions"


async def switch_on(window: MainWindow, **values: Any) -> str:
    """Serve at a port that is free; the address, without `/v1`."""
    settings = window.app_settings.now
    port = await _free_port()
    said = {"on": True, "port": port, **values}
    for key, value in said.items():
        settings = assign_all(settings, [(f"server.{key}", value)])
    window.app_settings._take(settings)  # all of it at once, as a start finds it
    await until(lambda: window.controller.server.state.status == "on", what="the server did not start")
    return window.controller.server.state.address.removesuffix("/v1")


async def _free_port() -> int:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    server.close()
    await server.wait_closed()
    return port


class Asked:
    """A request on its way. `text` grows while the answer comes."""

    def __init__(self, base: str, text: str, *, headers: str = "", **fields: Any) -> None:
        self._port = int(base.rpartition(":")[2])
        body = {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": 64, **fields}
        self._body = json.dumps(body).encode()
        self._headers = headers
        self.raw = b""
        self._writer: asyncio.StreamWriter | None = None
        self._task = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = (
            f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
            f"user-agent: editor/1.2\r\ncontent-length: {len(self._body)}\r\nconnection: close\r\n"
            f"{self._headers}\r\n"
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
        """What came so far."""
        lines = self.raw.decode().replace("\r\n", "\n").split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    @property
    def text(self) -> str:
        """What is written so far."""
        choices = [choice for event in self.events for choice in event.get("choices", ())]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    @property
    def error(self) -> str:
        """The code of the error event, or of the refusal; empty if there is none."""
        for event in self.events:
            if "error" in event:
                return str(event["error"]["code"])
        body = self.raw.partition(b"\r\n\r\n")[2]
        if self.status >= 400:
            return str(json.loads(body)["error"]["code"])
        return ""

    @property
    def is_whole(self) -> bool:
        """It ended as it should."""
        return b"data: [DONE]" in self.raw

    @property
    def done(self) -> bool:
        """The line is closed."""
        return self._task.done()

    async def whole(self) -> Asked:
        """Wait until the line is closed."""
        await asyncio.wait_for(self._task, 30)
        return self

    async def vanish(self) -> None:
        """Go away in the middle."""
        assert self._writer is not None
        self._writer.transport.abort()
        await self._task
