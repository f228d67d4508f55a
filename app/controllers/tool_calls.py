"""ToolCalls: handles the calls of answers: asks for permission, runs them, stores their results.

A chat with calls is stored before each step of them (`app.session.tools.loop`): a call runs only once it is
stored as running, so that it cannot run again after a restart. Calls of chats that are not open wait and run
as well.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from PySide6.QtCore import QObject

from app.chat.intents import AllowCall, RefuseCall
from app.controllers import strings
from app.controllers.answering import AnswerController
from app.controllers.app import App
from app.controllers.page import ChatPage
from app.controllers.tool_servers import ToolServers
from app.session import strings as session_strings
from app.session.chats.conversation import Conversation, Turn
from app.session.tools import loop
from app.session.tools.calls import CallRecord, ChosenTool, OfferedTool, Scope
from app.session.tools.permission import Allowance, Allowed, decide
from app.session.tools.views import ArgumentSpan, CallView, argument_spans
from core.errors import RequestError
from core.events import Generate, Image, ModelInfo
from core.system.reader_process import StoppedError
from core.tools.messages import CallResult, ServerTool, ToolsError, fingerprint


def with_tools(
    asked: Generate, offered: Sequence[OfferedTool], info: ModelInfo | None, *, free: bool = False
) -> Generate:
    """The request with these tools. Unless `free`, JSON calls must follow their schemas."""
    if not offered or info is None:
        return asked
    from core.tools.calls import ToolChoice
    from core.tools.schemas import relaxed

    declared = tuple(each.declared for each in offered)
    choice = ToolChoice(declared, strict=frozenset(each.name for each in declared))
    grammar = None if free else choice.grammar(info)
    return replace(asked, tools=declared, grammar=grammar and relaxed(grammar)[0])


class ToolCalls(QObject):
    """`kept` returns whether all stored data is durable. `proceed` gets the ids of a chat and of an answer
    whose calls have ended, to begin its next generation.
    """

    def __init__(
        self,
        app: App,
        servers: ToolServers,
        page: ChatPage,
        answering: AnswerController,
        kept: Callable[[], Awaitable[bool]],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._servers = servers
        self._page = page
        self._answering = answering
        self._kept = kept
        self.proceed: Callable[[str, str], None] = lambda chat_id, turn_id: None
        self._tasks: dict[asyncio.Task[None], str] = {}  # with their chats
        self._allowing: set[str] = set()  # calls whose permission is being carried out
        self._reasons: dict[str, tuple[str, ...]] = {}  # by call
        self._spans: dict[tuple[str, str], tuple[ArgumentSpan, ...]] = {}  # by call and arguments
        # Ids of erased chats, which are never reused.
        kept_chats = tuple(
            each for each in self.allowances if not each.chat_id or app.chats.has(each.chat_id)
        )
        app.preferences.change(tool_allowances=kept_chats)
        answering.calls_made.connect(self._take)
        page.chat_shown.connect(self._on_chat_shown)
        servers.changed.connect(self.show)

    # ---- the tools of a chat

    def offered(self, chat: Conversation) -> tuple[OfferedTool, ...]:
        """Tools of a chat whose servers are on and ready, as declared to the model."""
        if not chat.tools:
            return ()
        from core.tools.calls import model_names

        names = {
            key: name for name, key in model_names((each.server, each.tool) for each in chat.tools).items()
        }
        found: list[OfferedTool] = []
        for chosen in chat.tools:
            tool, entry = self._tool(chosen), self._servers.entry(chosen.server)
            if tool is not None and entry is not None:
                name = names[chosen.server, chosen.tool]
                found.append(OfferedTool(name, chosen.server, tool, fingerprint(entry, tool)))
        return tuple(found)

    def are_ready(self, chat: Conversation) -> bool:
        """Whether no server of the chat's tools still has to start."""
        return all(self._servers.state(name).phase not in ("off", "starting") for name in self._names(chat))

    def prepare(self, chat: Conversation, then: Callable[[], None]) -> None:
        """Start the servers of the chat's tools, and call `then` once each is ready or has failed."""
        self._begin(chat.id, self._prepare(self._names(chat), then))

    def missing(self, chat: Conversation) -> tuple[str, ...]:
        """The names of the chat's tools that cannot be offered now."""
        return tuple(each.tool for each in chat.tools if self._tool(each) is None)

    def show(self) -> None:
        """Show the tools and calls of the open chat."""
        chat = self._app.chats.open
        self._app.meter.set_tools(tuple(each.declared for each in self.offered(chat)))
        for turn in chat.turns:
            if turn.answer.calls:
                self._show(turn, chat)

    # ---- intents

    def calls_in(self, chat: Conversation) -> bool:
        """Whether the last answer of the chat waits for calls, or for its next generation after them."""
        return bool(chat.turns) and chat.turns[-1].answer.status == "calling"

    @property
    def calling(self) -> set[str]:
        """Ids of the chats whose calls are running."""
        return set(self._tasks.values())

    def allow(self, intent: AllowCall) -> None:
        """Run a waiting call of the open chat with the arguments that its card shows."""
        chat_id = self._app.chats.open.id
        if intent.call_id not in self._allowing:
            self._allowing.add(intent.call_id)
            self._begin(chat_id, self._allow(chat_id, intent))

    def refuse(self, intent: RefuseCall) -> None:
        """Tell the model that a waiting call of the open chat was not allowed."""
        self._step(self._app.chats.open.id, lambda chat: loop.refuse(chat, intent.turn_id, intent.call_id))

    def stop(self, chat_id: str) -> None:
        """End the answer of a chat with open calls. Running calls become “unknown”."""
        chat = self._find(chat_id)
        if chat is None or not self.calls_in(chat):
            return
        for task, own in list(self._tasks.items()):
            if own == chat_id:
                task.cancel()
        self._step(chat_id, lambda chat: loop.stopped(chat, chat.turns[-1].id))

    @property
    def allowances(self) -> tuple[Allowance, ...]:
        """The permissions that last longer than one call."""
        return self._app.preferences.now.tool_allowances

    async def close(self) -> None:
        """End all calls; running ones become “unknown”. Safe to call twice."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- inside

    def _names(self, chat: Conversation) -> tuple[str, ...]:
        """The servers that the chat needs and that are on."""
        wanted = [each.server for each in chat.tools]
        wanted += [call.server for call in loop.waiting(chat)]
        return tuple(name for name in dict.fromkeys(wanted) if self._servers.is_on(name))

    def _tool(self, chosen: ChosenTool) -> ServerTool | None:
        """The tool as its server declares it now."""
        if not self._servers.is_on(chosen.server):
            return None
        tools = self._servers.tools(chosen.server)
        return next((each for each in tools if each.name == chosen.tool), None)

    def _fingerprint(self, call: CallRecord) -> str:
        """The current fingerprint of the call's tool; empty if it is missing."""
        tool = self._tool(ChosenTool(call.server, call.tool))
        entry = self._servers.entry(call.server)
        return fingerprint(entry, tool) if tool and entry else ""

    async def _prepare(self, names: Sequence[str], then: Callable[[], None]) -> None:
        await self._servers.ready(names)
        then()

    def _take(self, chat_id: str) -> None:
        """Handle new calls of a chat, or calls that wait since the last run: ask, or run those allowed."""
        chat = self._find(chat_id)
        if chat is None or not self.calls_in(chat):
            return
        turn_id = chat.turns[-1].id
        for call in loop.waiting(chat):
            before = chat.turns[-1].answer.calls
            earlier = before[: next(at for at, each in enumerate(before) if each.id == call.id)]
            own = loop.own_texts(chat, turn_id)
            found = decide(call, chat_id, self.allowances, own, earlier)
            if isinstance(found, Allowed) and self._fingerprint(call) == call.fingerprint:
                chat = loop.allow(chat, turn_id, call.id, found.by, call.arguments)
                self._app.chats.keep(chat)
                self._begin(chat_id, self._run(chat_id, turn_id, call.id))
            else:
                changed = (session_strings.TOOL_CHANGED,)
                self._reasons[call.id] = changed if isinstance(found, Allowed) else found.reasons
        self._after_step(chat)

    async def _allow(self, chat_id: str, intent: AllowCall) -> None:
        """Run a call that was permitted, if the tool is as shown and the chat is stored."""
        try:
            chat = self._find(chat_id)
            call = (
                next((each for each in loop.waiting(chat) if each.id == intent.call_id), None)
                if chat
                else None
            )
            if call is None:
                return
            await self._servers.ready((call.server,))
            now = self._fingerprint(call)
            if not now:
                state = self._servers.state(call.server)
                problem = state.problem or strings.no_tool(call.server, call.tool)
                self._app.views.notice_bar.show_notice(f"{problem} {state.hint}".strip())
                return
            if now != call.fingerprint:
                self._reasons[call.id] = (session_strings.TOOL_CHANGED,)
                self._step(chat_id, lambda chat: loop.ask_again(chat, intent.turn_id, call.id, now))
                return
            allowed = self._step(
                chat_id,
                lambda chat: loop.allow(chat, intent.turn_id, call.id, intent.scope, intent.arguments),
            )
            if not allowed:
                return
            self._remember(call, intent.scope, chat_id)
        finally:
            self._allowing.discard(intent.call_id)
        self._take(chat_id)  # the permission may cover other waiting calls
        await self._run(chat_id, intent.turn_id, intent.call_id)

    def _remember(self, call: CallRecord, scope: Scope, chat_id: str) -> None:
        given = loop.allowance(call, scope, chat_id)
        if given is not None and given not in self.allowances:
            self._app.preferences.change(tool_allowances=(*self.allowances, given))

    async def _run(self, chat_id: str, turn_id: str, call_id: str) -> None:
        """Run a call that is stored as running, once."""
        begun_s = time.monotonic()
        images: tuple[Image, ...] = ()
        try:
            if not await self._kept():
                raise ToolsError(strings.CALL_NOT_STORED, strings.CALL_NOT_STORED_HINT)
            chat = self._find(chat_id)
            call = (
                next((each for each in chat.turn(turn_id).answer.calls if each.id == call_id), None)
                if chat
                else None
            )
            if call is None or call.state != "running":
                return  # stopped, or erased
            begun_s = time.monotonic()
            result = await self._servers.client.call(call.server, call.tool, call.arguments)
            images, result = await self._with_images(result, call)
        except ToolsError as error:
            lost, seconds = error, time.monotonic() - begun_s
            self._step(chat_id, lambda chat: loop.failed(chat, turn_id, call_id, lost, seconds))
            return
        self._step(chat_id, lambda chat: loop.returned(chat, turn_id, call_id, result, images))

    async def _with_images(
        self, result: CallResult, call: CallRecord
    ) -> tuple[tuple[Image, ...], CallResult]:
        """Images of a result: stored with the chat if the model accepts images; else only named."""
        info = self._app.link.info
        kept: list[Image] = []
        named = list(result.other)
        for number, image in enumerate(result.images, start=1):
            name = strings.image_of(call.tool, number)
            if info is None or not info.sees:
                named.append(strings.unseen_image(name))
                continue
            try:
                kept.append(await asyncio.to_thread(self._app.home.library.images.keep, image.data, name))
            except (RequestError, StoppedError) as error:
                named.append(f"{name}: {error}")
        return tuple(kept), replace(result, other=tuple(named))

    def _step(self, chat_id: str, step: Callable[[Conversation], Conversation]) -> bool:
        """Store and show a chat after one step; False if the step is not possible now."""
        chat = self._find(chat_id)
        if chat is None:
            return False
        try:
            chat = step(chat)
        except loop.CallError as error:
            self._app.views.notice_bar.show_notice(str(error))
            return False
        self._app.chats.keep(chat)
        self._after_step(chat)
        return True

    def _after_step(self, chat: Conversation) -> None:
        """Show the calls, and continue once all have ended."""
        turn = chat.turns[-1]
        if chat.id == self._app.chats.open.id:
            self._show(turn, chat)
        if loop.is_answered(turn.answer):
            self.proceed(chat.id, turn.id)
        elif turn.answer.over:
            self._answering.end_calling(chat.id, turn.id)

    def _find(self, chat_id: str) -> Conversation | None:
        with suppress(KeyError, RequestError):  # erased, or unreadable
            return self._app.chats.get(chat_id)
        return None

    # ---- display

    def _on_chat_shown(self) -> None:
        chat = self._app.chats.open
        self.show()
        if chat.tools or loop.waiting(chat):
            self.prepare(chat, lambda: self._take(chat.id))

    def _show(self, turn: Turn, chat: Conversation) -> None:
        views = tuple(self._view(call) for call in turn.answer.calls)
        self._app.views.transcript.show_calls(turn.id, views)
        for call in turn.answer.calls:
            if call.state == "waiting" and (call.id, call.arguments) not in self._spans:
                self._spans[call.id, call.arguments] = ()
                self._begin(chat.id, self._trace(chat, turn, call))

    def _view(self, call: CallRecord) -> CallView:
        tool = self._tool(ChosenTool(call.server, call.tool)) or ServerTool(call.tool)
        spans = self._spans.get((call.id, call.arguments), ())
        return CallView(call, tool, self._reasons.get(call.id, ()), spans)

    async def _trace(self, chat: Conversation, turn: Turn, call: CallRecord) -> None:
        """Find where the arguments of a call come from, on a thread, and show it."""
        spans = await asyncio.to_thread(argument_spans, chat.upto(turn.id), call)
        self._spans[call.id, call.arguments] = spans
        now = self._find(chat.id)
        if now is not None and now.id == self._app.chats.open.id and now.has(turn.id):
            self._show(now.turn(turn.id), now)

    def _begin(self, chat_id: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks[task] = chat_id
        task.add_done_callback(self._on_task_ended)

    def _on_task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ToolsError):
            self._app.views.notice_bar.show_notice(str(error))
        elif error is not None:
            context = {"message": "A call of a tool was not carried out.", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
