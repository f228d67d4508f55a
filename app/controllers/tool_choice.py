"""ToolChoiceController: fills the composer's Tools button, and counts the tokens of each tool."""

from __future__ import annotations

import json

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.intents import ChooseTools
from app.chat.tools import strings
from app.chat.tools.choice import ServerOffer, ToolChoice, ToolOffer
from app.controllers.app import App
from app.controllers.context_meter import TokenCounts
from app.controllers.page import ChatPage
from app.controllers.tool_servers import ToolServers
from app.session.tools.calls import ChosenTool
from core.events import CountTokens, ModelInfo, TokenCount
from core.tools.messages import ServerEntry, ServerTool
from core.worker.client import CommandError

_SOON_MS = 50


def declaration(tool: ServerTool) -> str:
    """Approximately what a chat template writes for a tool."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


class ToolChoiceController(QObject):
    """The servers that are on start when the choice is opened."""

    window_requested = Signal()  # of the servers
    counted = Signal()  # the tokens of some tools

    def __init__(self, app: App, page: ChatPage, servers: ToolServers, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app, self._servers = app, servers
        self._info: ModelInfo | None = None  # of the loaded model
        self._counts = TokenCounts()
        self._composer = app.views.composer
        self._composer.tools.wire(self._choose, servers.start, self.window_requested.emit)
        self._soon = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._soon.timeout.connect(self.show)
        servers.changed.connect(self._soon.start)
        page.chat_shown.connect(self.show)

    def tokens(self, tool: ServerTool) -> int | None:
        """Tokens of a tool's declaration in a prompt; None: not counted yet."""
        return self._counts.of(declaration(tool))

    def follow(self, info: ModelInfo | None) -> None:
        """React to another model, or to none."""
        if info is self._info:
            return
        if info is None or self._info is None or info.family != self._info.family:
            self._counts = TokenCounts()
        self._info = info
        self.show()

    def show(self) -> None:
        """Show the tools of the servers that are on, and count those that are not counted."""
        if self._info:
            offered = [tool for entry in self._servers.on for tool in self._servers.tools(entry.name)]
            for text in self._counts.ask(map(declaration, offered)):
                self._app.worker.begin(self._count(text))
        offers = tuple(map(self._offer, self._servers.on))
        unread = self._info is not None and not self._info.format.calls
        why_not = strings.UNREAD_CALLS if unread else ""
        self._composer.tools.show_choice(ToolChoice(offers, self._app.chats.open.tools, why_not))

    def _offer(self, entry: ServerEntry) -> ServerOffer:
        state = self._servers.state(entry.name)
        tools = self._servers.tools(entry.name)
        if state.phase == "ready":
            offered = tuple(ToolOffer(each.name, each.description, self.tokens(each)) for each in tools)
            return ServerOffer(entry.name, offered, "" if tools else strings.HAS_NO_TOOLS)
        if state.phase == "failed":
            return ServerOffer(entry.name, (), f"{state.problem} {state.hint}".strip(), failed=True)
        return ServerOffer(entry.name, (), strings.STARTING)

    def _choose(self, tools: tuple[ChosenTool, ...]) -> None:
        self._composer.intent.emit(ChooseTools(tools))
        self.show()

    async def _count(self, text: str) -> None:
        counts = self._counts
        try:
            count = await self._app.worker.ask(CountTokens("", text), TokenCount)
        except CommandError:
            counts.answer(text, None)
            return
        counts.answer(text, count.tokens, exact=not count.estimated)
        if counts is self._counts:
            self._soon.start()
            self.counted.emit()
