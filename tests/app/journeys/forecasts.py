"""A tool server of the SDK's own for the whole journey: its one tool has two towns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from mcp.server import MCPServer

server = MCPServer("forecasts")


@server.tool()
def get_forecast(town: Literal["Bern", "Thun"]) -> str:
    """The weather forecast of a town."""
    with open(Path(sys.argv[1]), "a", encoding="utf-8") as file:
        file.write(f"{town}\n")
    return f"Forecast for {town}: drizzle until noon, 9 degrees, wind from the west."


if __name__ == "__main__":
    server.run()
