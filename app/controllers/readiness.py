"""Readiness: whether the open chat can be asked, edited or continued now; a notice says why not."""

from __future__ import annotations

from app.controllers import strings
from app.controllers.answering import AnswerController
from app.controllers.app import App
from app.controllers.page import ChatPage
from app.controllers.tool_calls import ToolCalls
from app.panels.strings import STOP_GENERATING
from app.session.status import why_unseen
from app.session.turn.intents import Stop
from app.session.turn.link_state import Phase
from core.events import Message


class Readiness:
    """Shared by what asks, queues and edits in the open chat."""

    def __init__(self, app: App, page: ChatPage, answering: AnswerController, tools: ToolCalls) -> None:
        self._app = app
        self._views = app.views
        self._chats = app.chats
        self._page = page
        self._answering = answering
        self._tools = tools
        self._refused = ""  # the reason in the notice

    @property
    def ready(self) -> bool:
        """Whether the worker can be asked."""
        return self._app.link.phase is Phase.READY

    @property
    def answers_here(self) -> bool:
        """Whether the open chat is being answered, or its answer waits for calls."""
        is_running = self._answering.running is not None and not self._answering.elsewhere
        return is_running or self._tools.calls_in(self._chats.open)

    @property
    def edited(self) -> str:
        """The turn of the open chat whose message is edited in the composer; empty if none is."""
        return self._page.edited

    @property
    def continuable(self) -> str:
        """The turn of the open chat whose answer the model can continue; empty if there is none."""
        last, info = self._chats.open.turns[-1:], self._app.link.info
        return last[0].id if last and info and last[0].answer.can_go_on(info.name) else ""

    def may_ask(self, question: Message | None = None) -> bool:
        """Whether `question` can be sent now. If not, a notice gives the reason."""
        if self.ready:
            unseen = why_unseen(self._app.link.info, question) if question else ""
            if unseen:
                self.refuse(unseen)
            return not unseen
        phase, title = self._app.link.phase, self._answering.elsewhere
        if title:
            self.refuse(strings.after_other_chat(title))
        elif self.answers_here:
            self.refuse(strings.AFTER_THIS_ANSWER)
        elif self._app.link.busy:
            self.refuse(strings.AFTER_RACE)
        else:
            self.refuse(strings.NOT_READY.get(phase, ""))
        return False

    def refuse(self, reason: str) -> None:
        """Show why an action is not possible now, with a button to stop the answer of another chat."""
        self._refused = reason
        if self._answering.elsewhere:
            self._views.notice_bar.show_notice(reason, STOP_GENERATING, self.stop_running)
        else:
            self._views.notice_bar.show_notice(reason)

    def end_refusal(self) -> None:
        """Hide the reason of `refuse`, which does not apply any more."""
        if self._refused and self._views.notice_bar.text == self._refused:
            self._views.notice_bar.clear()
        self._refused = ""

    def stop_running(self) -> None:
        """Stop the running answer, whichever chat it belongs to, and the messages queued behind it."""
        if self._answering.running is not None and self._app.link.busy:
            self._answering.stop_then(None)
            self._app.handle(Stop())
