"""A tool server of the SDK's own, of its newest protocol."""

from __future__ import annotations

from mcp.server import MCPServer
from pydantic import BaseModel

server = MCPServer("sdk")


class Weather(BaseModel):
    town: str
    degrees: float


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def weather(town: str) -> Weather:
    """The weather of a town."""
    return Weather(town=town, degrees=21.5)


@server.tool()
def fail(why: str) -> str:
    """Fails."""
    raise ValueError(why)


if __name__ == "__main__":
    server.run()
