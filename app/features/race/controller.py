"""RaceController: the race's prompt, its two requests, and its page.

The requests are queued like all others and answered in isolation: the open chat and the worker's cache stay
unchanged. Events of the answers come from `RunningAnswer`.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.views import Views
from app.features.race import strings
from app.features.race.state import (
    Ask,
    Broke,
    Course,
    Ended,
    Given,
    Halt,
    Race,
    Read,
    Stage,
    StartRace,
    StopAnswer,
    Wrote,
    advance,
)
from app.features.side_window import on_click
from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.session.turn.intents import Stop, Submit
from app.session.turn.link_state import Link, Phase
from core.events import Failed, Finished, Gauges, Message, PrefillProgress, ReadingMap, Token
from core.settings import assign_all
from core.settings.request import drawn

# The page is painted rarely while an answer is recorded, so that painting takes no time from it.
_SHOW_EVERY_MS = 250
_MOST_TOKENS = 256


class RaceController(QObject):
    """`handle` carries out intents, as for every controller."""

    shown_changed = Signal(bool)  # whether the race is visible

    def __init__(
        self,
        views: Views,
        chats: Chats,
        handle: Callable[[Submit | Stop], None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._views = views
        self._chats = chats
        self._handle = handle
        self._phase = Phase.STARTING
        self._filled = ("", "")
        self.race = Race()
        self.open = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SHOW_EVERY_MS)
        self._soon.timeout.connect(self._show)
        page = views.race
        on_click(
            (page.start_button, self.start),
            (page.again_button, self.start),
            (page.stop_button, self.halt),
            (page.done_button, self.close),
        )

    @property
    def recording(self) -> bool:
        """Whether the running answer is the race's."""
        return self.race.recording

    def show(self) -> None:
        """Shows the race with the open chat's last question."""
        self._fill()
        if not self.open:
            self.open = True
            self.shown_changed.emit(True)
        page = self._views.race
        self._show()
        (page.start_button if page.start_button.isVisible() else page.done_button).setFocus()

    def close(self) -> None:
        """Returns to the chat and discards an unfinished recording."""
        if self.open:
            self.open = False
            self.halt()
            self.shown_changed.emit(False)

    def toggle(self) -> None:
        """Shows or hides the race."""
        (self.close if self.open else self.show)()

    def start(self) -> None:
        """Records both answers."""
        page = self._views.race
        message = page.prompt.message
        if self._phase is not Phase.READY or not message.content:
            return
        asked = self._earlier().ask("race", message).messages_for_request()
        # One seed for both, drawn at the start.
        settings = assign_all(
            drawn(self._views.inspector.settings),
            [
                ("drafting.drafter", page.prompt.drafter.value),
                ("sampling.max_tokens", int(page.prompt.most_tokens.value)),
            ],
        )
        page.prompt.show_seed(settings.sampling)
        self._advance(StartRace(Course(asked, settings)))

    def halt(self) -> None:
        """Stops recording."""
        self._advance(Halt())

    # ---- events of its answers, as `AnswerListener`

    def begin(self) -> None:
        """Nothing to do: the page shows recorded answers only."""

    def read(self, progress: PrefillProgress) -> None:
        """Records the progress of reading the prompt."""
        self._advance(Read(progress))

    def choose(self, reading: ReadingMap) -> None:
        """Nothing to do: the page has no reading map."""

    def write(self, token: Token) -> None:
        """Records a token."""
        self._advance(Wrote(token))

    def measure(self, gauges: Gauges) -> None:
        """Nothing to do: the page has its own figures."""

    def finish(self, finished: Finished) -> None:
        """The answer has ended normally."""
        self._advance(Ended(finished))

    def fail(self, failed: Failed, tokens: int) -> None:
        """The worker refused or failed the request."""
        self._advance(Broke(f"{failed.message} {failed.hint}".strip()))

    def cut_off(self, tokens: int, *, closing: bool) -> None:
        """The worker exited."""
        self._advance(Broke(strings.WORKER_GONE))

    def follow(self, link: Link, blocked: str) -> None:
        """Follows the worker; `blocked` is the reason why nothing can be sent, empty if it can."""
        self._phase = link.phase
        self._views.race.show_blocked("" if link.phase is Phase.READY or self.recording else blocked)

    # ---- inside

    def _advance(self, given: Given) -> None:
        step = advance(self.race, given)
        changed, before = step.race is not self.race, self.race.stage
        self.race = step.race
        if changed and (step.race.stage is not before or not step.race.recording):
            self._show()
        elif changed and not self._soon.isActive():
            self._soon.start()
        for effect in step.effects:
            match effect:
                case Ask(request, messages, settings):
                    self._handle(Submit(request, messages, settings, isolated=True))
                case StopAnswer():
                    self._handle(Stop())

    def _show(self) -> None:
        self._soon.stop()
        self._views.race.show_race(self.race)

    def _earlier(self) -> Conversation:
        """Returns the open chat before its last question."""
        return self._chats.open.with_turns(self._chats.open.turns[:-1])

    def _fill(self) -> None:
        """Fills in the question, unless the same one was filled in before: the person may have edited it."""
        chat = self._chats.open
        key = (chat.id, chat.turns[-1].id if chat.turns else "")
        if key == self._filled or self.recording:
            return
        self._filled = key
        prompt, settings = self._views.race.prompt, self._views.inspector.settings
        example = Message("user", strings.EXAMPLE.strip())
        prompt.show_message(
            chat.turns[-1].user if chat.turns else example, len(self._earlier().messages_for_request())
        )
        prompt.show_seed(settings.sampling)
        drafter = settings.drafting.drafter
        prompt.drafter.set_value("auto" if drafter == "off" else drafter)
        prompt.most_tokens.set_value(min(_MOST_TOKENS, settings.sampling.max_tokens))
        if self.race.stage is Stage.RUN:
            self.race = Race(number=self.race.number)
