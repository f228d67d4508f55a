"""RaceController asks the question of a race without and with drafting, one after the other.

The requests are queued like all others and answered in isolation: the open chat and the worker's cache stay
unchanged.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.app import App
from app.controls.buttons import on_click
from app.features.race import strings
from app.features.race.page import RacePage
from app.features.race.state import Race, Stage
from app.session.chats.conversation import Conversation
from app.session.status import why_unseen
from app.session.turn import effects as fx
from app.session.turn.intents import Stop
from app.session.turn.link_state import Phase
from core.events import Finished, Generate, Message, PrefillProgress, Token
from core.settings import Settings, assign, assign_all

# The page is painted rarely while an answer is recorded, so that painting takes no time from it.
_SHOW_EVERY_MS = 250
_MOST_TOKENS = 256


class RaceController(QObject):
    """Records both answers and shows them."""

    shown_changed = Signal(bool)  # whether the race is visible

    def __init__(self, app: App, page: RacePage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._views = app.views
        self._page = page
        self._filled = ("", "")
        self._number = 0  # of the last request, so that each id is new
        self.race = Race()
        self.open = False
        self._soon = QTimer(self, singleShot=True, interval=_SHOW_EVERY_MS)
        self._soon.timeout.connect(self._show)
        on_click(
            (page.start_button, self.start),
            (page.again_button, self.start),
            (page.stop_button, self.halt),
            (page.done_button, self.close),
        )

    @property
    def recording(self) -> bool:
        return self.race.recording

    def show(self) -> None:
        """Shows the race with the open chat's last question."""
        self._fill()
        if not self.open:
            self.open = True
            self.shown_changed.emit(True)
        page = self._page
        self._show()
        (page.start_button if page.start_button.isVisible() else page.done_button).setFocus()

    def close(self) -> None:
        """Returns to the chat and discards an unfinished recording."""
        if self.open:
            self.open = False
            self.halt()
            self.shown_changed.emit(False)

    def toggle(self) -> None:
        (self.close if self.open else self.show)()

    def start(self) -> None:
        page = self._page
        message = page.prompt.message
        if not self._ready or self.recording or not (message.content or message.images):
            return
        if why := why_unseen(self._app.link.info, message):
            self._end(why)
            return
        settings = assign_all(
            self._views.inspector.settings,
            [
                ("drafting.drafter", page.prompt.drafter.value),
                ("sampling.max_tokens", int(page.prompt.most_tokens.value)),
            ],
        )
        page.prompt.show_seed(settings.sampling)
        asked = self._earlier().ask("race", message).messages_for_request()
        self.race = Race(Stage.PLAIN, asked, settings)
        self._ask(assign(settings, "drafting.drafter", "off"))

    def halt(self) -> None:
        if self.race.side is not None:
            self.race.stage = Stage.STOPPING
            self._show()
            self._app.handle(Stop())

    def take(self, event: fx.AnswerEvent) -> None:
        """Handle the next event of one of its answers, whose page shows recorded ones only."""
        side = self.race.side
        match event:
            case PrefillProgress() if side:
                side.progress = event
                self._show_soon()
            case Token() if side and event.position == len(side.tokens):
                side.tokens.append(event)
                self._show_soon()
            case Token() if side:
                self._app.trouble.token_misplaced(event, len(side.tokens))
            case Finished():
                self._finish(event)
            case fx.AnswerFailed(failed):
                self._end(f"{failed.message} {failed.hint}".strip())
            case fx.AnswerCutOff():
                self._app.trouble.answer_lost(len(side.tokens) if side else 0)
                self._end(strings.WORKER_GONE)

    def _finish(self, finished: Finished) -> None:
        race, side = self.race, self.race.side
        if side is None or finished.reason == "cancelled":
            self._end("")
            return
        side.finished = finished
        if side is race.plain:
            assert race.settings
            race.stage = Stage.DRAFTED
            self._ask(race.settings)
        else:
            race.stage, race.request = Stage.RUN, ""
            self._show()

    def show_blocked(self, blocked: str) -> None:
        self._page.show_blocked("" if self._ready or self.recording else blocked)

    # ---- inside

    @property
    def _ready(self) -> bool:
        return self._app.link.phase is Phase.READY

    def _ask(self, settings: Settings) -> None:
        self._number += 1
        self.race.request = f"race-{self._number}"
        self._show()
        self._app.handle(Generate(self.race.request, self.race.messages, settings, isolated=True))

    def _end(self, trouble: str) -> None:
        self.race = Race(trouble=trouble)
        self._show()

    def _show_soon(self) -> None:
        if not self._soon.isActive():
            self._soon.start()

    def _show(self) -> None:
        self._soon.stop()
        self._page.show_race(self.race)

    def _earlier(self) -> Conversation:
        """Returns the open chat before its last question."""
        return self._app.chats.open.with_turns(self._app.chats.open.turns[:-1])

    def _fill(self) -> None:
        """Fills in the question, unless the same one was filled in before: the person may have edited it."""
        chat = self._app.chats.open
        key = (chat.id, chat.turns[-1].id if chat.turns else "")
        if key == self._filled or self.recording:
            return
        self._filled = key
        prompt, settings = self._page.prompt, self._views.inspector.settings
        example = Message("user", strings.EXAMPLE.strip())
        prompt.show_message(
            chat.turns[-1].user if chat.turns else example, len(self._earlier().messages_for_request())
        )
        prompt.show_seed(settings.sampling)
        drafter = settings.drafting.drafter
        prompt.drafter.set_value("auto" if drafter == "off" else drafter)
        prompt.most_tokens.set_value(min(_MOST_TOKENS, settings.sampling.max_tokens))
        if self.race.stage is Stage.RUN:
            self.race = Race()
