"""TroubleController: what went wrong, on the banner or in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec.structs import replace

from app.chat.banner import Banner
from app.session.turn import effects as fx
from app.session.worker.trouble import (
    Trouble,
    Troubles,
    Until,
    of_death,
    of_failed_load,
    of_failure,
    of_missing,
    of_silence,
    of_tables,
    of_unreadable,
)
from core.errors import RequestError
from core.events import Failed, TableStatus, failure

_LOG = logging.getLogger("draftlight.window")


class TroubleController:
    """The one way to the banner: every controller says here what is wrong, and what has ended it.

    `context_tokens` gives what an answer may fill. Words come from `session.trouble`.
    """

    def __init__(self, banner: Banner, context_tokens: Callable[[], int]) -> None:
        self._banner = banner
        self._context_tokens = context_tokens
        self._troubles = Troubles()
        self._tell_dismissed: Callable[[Trouble], None] = lambda trouble: None
        banner.dismissed.connect(self._dismiss)
        banner.next_requested.connect(lambda: self._show_first(self._troubles.next()))

    def listen_dismissed(self, tell: Callable[[Trouble], None]) -> None:
        """`tell` hears what a person has closed."""
        self._tell_dismissed = tell

    def show(self, trouble: Trouble) -> None:
        """This is wrong, too."""
        self._show_first(self._troubles.with_new(trouble))

    def withdraw(self, trouble: Trouble | None) -> None:
        """This is over."""
        self._show_first(self._troubles.without(trouble))

    def end(self, happened: Until) -> None:
        """Whatever lasts no longer than until this is over."""
        self._show_first(self._troubles.after(happened))

    # ---- what is heard

    def on_model_ready(self, effect: fx.ModelReady) -> None:
        """The model is there, if not over all machines that it was to run over."""
        self.end(Until.READY)
        if effect.missing:
            self.show(of_missing(effect.info, effect.missing))

    def on_load_failed(self, effect: fx.LoadFailed) -> None:
        """No model, and why."""
        self.show(of_failed_load(effect.failed, effect.kept, effect.model, effect.missing))

    def on_trouble(self, effect: fx.TroubleHeard) -> None:
        """A failure that no request of ours was waiting for."""
        self.show(of_failure(effect.failed))

    def on_tables_warned(self, status: TableStatus) -> None:
        """What must be known of the tables."""
        self.show(of_tables(status))

    def on_worker_died(self, effect: fx.WorkerDied, written_tokens: int | None) -> None:
        """`written_tokens` of the answer that it was writing, None if it wrote none."""
        self.end(Until.MOVES)
        self.show(of_death(effect, written_tokens, self._context_tokens()))

    def on_worker_stuck(self, effect: fx.WorkerStuck) -> None:
        """It lives and does not move."""
        self.show(of_silence(effect))

    def on_silence_broken(self, effect: fx.SilenceBroken) -> None:
        """It moves again."""
        self.end(Until.MOVES)

    def on_worker_mistake(self, effect: fx.WorkerMistake) -> None:
        """The worker's bug, or a broken wire; said if nothing worse is."""
        _LOG.warning("The worker broke the protocol: %s", effect.message)
        if not self._troubles.held:
            self.show(of_unreadable(effect.message))

    def on_window_mistake(self, effect: fx.WindowMistake) -> None:
        """Our bug."""
        _LOG.error("The window broke the protocol: %s", effect.message)

    # ---- what others say

    def show_failure(self, failed: Failed, *, text_is_back: bool) -> None:
        """An answer failed; `text_is_back`: what was sent can be sent again."""
        self.show(of_failure(failed, text_is_back=text_is_back, context_tokens=self._context_tokens()))

    def show_request_error(self, error: RequestError, command: str) -> Trouble:
        """Something that a person asked of the window and that cannot be done. What is shown of it."""
        trouble = replace(of_failure(failure(error, command=command)), until=Until.ASKED)
        self.show(trouble)
        return trouble

    def _dismiss(self) -> None:
        trouble = self._troubles.shown
        self.withdraw(trouble)
        if trouble:
            self._tell_dismissed(trouble)

    def _show_first(self, troubles: Troubles) -> None:
        if troubles == self._troubles:
            return
        self._troubles = troubles
        if troubles.shown is None:
            self._banner.clear()
        else:
            self._banner.show_trouble(troubles.shown, troubles.at + 1, len(troubles.held))
