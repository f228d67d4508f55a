"""Rows of the window of the tool servers: servers, tools and permissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from PySide6.QtGui import QPixmap

from app.controls.record_table import Column, swatch
from app.features.tools import strings
from app.session.tools.form import visible
from app.session.tools.permission import Allowance
from core.tools.messages import ServerEntry, ServerState, ServerTool


class ServerRow(Struct, frozen=True):
    """`dot` is the color of its state, empty if it is off."""

    id: str
    title: str
    says: str
    dot: str = ""

    @property
    def spoken(self) -> str:
        return f"{self.title}, {self.says}"

    @property
    def tip(self) -> str:
        return self.title


def server_row(entry: ServerEntry, state: ServerState, on: bool) -> ServerRow:
    name = visible(entry.name)
    if not on:
        return ServerRow(entry.name, name, "Off")
    match state.phase:
        case "ready":
            return ServerRow(entry.name, name, strings.tools_count(len(state.tools)), "series_blue")
        case "failed":
            return ServerRow(entry.name, name, strings.FAILED, "series_vermilion")
        case "starting" | "ended":
            return ServerRow(entry.name, name, strings.STARTING, "normal_mark")
        case _:
            return ServerRow(entry.name, name, strings.ON, "normal_mark")


class ToolRow(Struct, frozen=True):
    id: str
    title: str
    says: str
    reads: str
    tokens: str

    @property
    def spoken(self) -> str:
        return strings.spoken_tool(self.title, self.tokens, self.says)

    @property
    def tip(self) -> str:
        return self.says or self.title


def tool_rows(tools: Sequence[ServerTool], tokens: Callable[[ServerTool], int | None]) -> tuple[ToolRow, ...]:
    """The rows of a server's tools. `tokens` counts a declaration, None if it is not counted."""
    rows = []
    for tool in tools:
        count = tokens(tool)
        says = " ".join(visible(tool.description).split())
        size = "" if count is None else f"{count:,}"
        reads = strings.YES if tool.read_only else strings.NO
        rows.append(ToolRow(tool.name, visible(tool.name), says, reads, size))
    return tuple(rows)


class AllowanceRow(Struct, frozen=True):
    id: str
    title: str
    server: str
    where: str

    @property
    def spoken(self) -> str:
        return strings.spoken_allowance(self.title, self.server, self.where)

    @property
    def tip(self) -> str:
        return self.where


def allowance_id(allowance: Allowance) -> str:
    return "\n".join(
        (allowance.server, allowance.tool, allowance.scope, allowance.chat_id, allowance.fingerprint)
    )


def allowance_rows(allowances: Sequence[Allowance], titles: Mapping[str, str]) -> tuple[AllowanceRow, ...]:
    """The rows of permissions. `titles`: titles of chats by id."""
    return tuple(
        AllowanceRow(
            allowance_id(each),
            visible(each.tool),
            visible(each.server),
            strings.ALWAYS if each.scope == "always" else titles.get(each.chat_id, strings.GONE_CHAT),
        )
        for each in allowances
    )


def _dot(row: ServerRow, place: int, ratio: float) -> QPixmap | None:
    return swatch(8, 4, ratio, row.dot, "" if row.dot else "text3")


SERVER_COLUMNS = (Column("title", strings.SERVERS, 180, grows=True, icon=_dot, below="says"),)
TOOL_COLUMNS = (
    Column("title", strings.TOOL, 240, grows=True, below="says"),
    Column("reads", strings.READS, 128, ink="text2"),
    Column("tokens", strings.TOKENS, 80, right=True),
)
ALLOWANCE_COLUMNS = (
    Column("title", strings.TOOL, 200, grows=True),
    Column("server", strings.SERVER, 180, ink="text2"),
    Column("where", strings.SCOPE, 260, ink="text2"),
)
