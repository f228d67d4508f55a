"""The window's server in a journey: switched on at a port that is free, asked on the window's loop."""

from __future__ import annotations

import asyncio
from typing import Any

from app.bench.served import Client, free_port
from app.shell.window import MainWindow
from tests.app.stage import until

AGENT = "editor/1.2"


async def switch_on(window: MainWindow, **values: Any) -> str:
    """Serve at a port that is free; the address as clients take it."""
    said = {"port": await free_port(), **values, "on": True}
    for key, value in said.items():
        window.app_settings.set(f"server.{key}", value)
    # One that is on already, from the last run's settings, moves to the new port soon.
    at = f":{said['port']}/"
    await until(lambda: at in window.controller.server.state.address, what="the server did not start")
    return window.controller.server.state.address


class Asked(Client):
    """By one editor. A test waits at most 30 s for the end."""

    def __init__(self, base: str, text: str, *, headers: str = "", called: str = "", **fields: Any) -> None:
        super().__init__(base, AGENT, text, headers=headers, called=called, **fields)

    async def whole(self) -> Asked:
        await asyncio.wait_for(self.ended(), 30)
        return self
