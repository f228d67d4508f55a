"""LiveAnswer: the shown state of a running answer, kept while another chat is shown."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from app.chat.entry import AnswerEntry
from app.chat.reading_state import now_s
from app.gauges.strip import InstrumentStrip
from core.events import Gauges, PrefillProgress

# The longest time that an instrument looks back is the 20 s of its line, of which each sample is the speed of
# the 5 s before.
_KEPT_S = 30.0


class LiveAnswer(Struct, eq=False):
    """The answer of `chat_id` that is running, with its `entry` in the transcript, which gets all events.

    `held_tokens` is the context that it uses, as the worker reported; 0 before the prompt is read. Figures of
    the last seconds are kept with the times at which the gauges showed them.
    """

    chat_id: str
    entry: AnswerEntry
    held_tokens: int = 0
    _figures: deque[tuple[Gauges | PrefillProgress, float]] = field(default_factory=deque)

    def show_figures(self, figures: Gauges | PrefillProgress, strip: InstrumentStrip | None) -> None:
        """Keep new figures, and show them in `strip`; None: another chat is shown."""
        at_s, kept = now_s(), self._figures
        if kept and _is_scoring(figures) and _is_scoring(kept[-1][0]):
            kept.pop()  # one share of the text after the other, without a speed
        kept.append((figures, at_s))
        while len(kept) > 2 and kept[1][1] < at_s - _KEPT_S:
            kept.popleft()
        if strip is not None:
            _show(figures, at_s, strip)

    def is_of(self, turn_id: str) -> bool:
        return self.entry.turn_id == turn_id

    def restore(self, strip: InstrumentStrip) -> None:
        """Bring a `strip` without figures to the state that it would have had."""
        for figures, at_s in self._figures:
            _show(figures, at_s, strip)


def _is_scoring(figures: Gauges | PrefillProgress) -> bool:
    return isinstance(figures, PrefillProgress) and figures.phase == "scoring"


def _show(figures: Gauges | PrefillProgress, at_s: float, strip: InstrumentStrip) -> None:
    if isinstance(figures, Gauges):
        strip.show_gauges(figures, at_s)
    else:
        strip.show_prefill(figures, at_s)
