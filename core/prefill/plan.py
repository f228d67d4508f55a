"""Decides whether a prompt is read completely or sparsely, and why. Pure.

Three decisions at three moments. Before the cache is looked up: must every token be read at any cost
(`dense_reason`)? Then only a prefix without gaps may be reused. After it, when the number of new tokens is
known: would reading all of them take too long (`decide`)? If so, after scoring: does a passage match the
question (`Scored.stands_out`)?

`auto` reads everything where a request needs the whole text, where that is quick, and where no passage
matches.
"""

from __future__ import annotations

from msgspec import Struct

from core.events import Change
from core.prefill.requests import needs_every_token
from core.settings.prefill import Prefill

ASKS_FOR_ALL = "this asks for the whole document, so all of it was read"
NOTHING_STANDS_OUT = "nothing in the text stands out for this question, so all of it was read"


class Decision(Struct, frozen=True):
    """Whether to read sparsely, the reason in words, and a change if the settings say otherwise."""

    sparse: bool
    reason: str
    change: Change | None = None


def dense_reason(settings: Prefill, question: str) -> str:
    """The reason why every token must be read; empty if passages may be skipped."""
    if settings.mode == "off":
        return "sparse prefill is off"
    if settings.keep_pct >= 100:
        return "all of the text is kept"
    if settings.mode == "auto" and needs_every_token(question):
        return ASKS_FOR_ALL  # unless scoring finds a passage that answers it
    return ""


def beyond(settings: Prefill, dense: str, prompt_tokens: int) -> Decision:
    """The decision for a prompt longer than the context: the passages that fit are read."""
    reason = f"{prompt_tokens:,} tokens are more than the context takes, so the passages that fit are read"
    change = Change("prefill.keep_pct", "100", f"{settings.keep_pct:g}", reason) if dense else None
    return Decision(True, reason, change)


def decide(settings: Prefill, dense: str, new_tokens: int, dense_s: float | None = None) -> Decision:
    """`dense` is the result of `dense_reason`; `new_tokens` are not in the cache yet.

    `dense_s`: predicted seconds of reading all of them, None if unknown.
    """
    quick = settings.is_quick(new_tokens, dense_s)
    if dense:
        # A prompt that is quick to read would have been read completely anyway.
        is_change = settings.mode == "auto" and settings.keep_pct < 100 and not quick
        return Decision(False, dense, refused(settings, dense) if is_change else None)
    takes = "" if dense_s is None else f", about {dense_s:.0f} s to read whole"
    if settings.mode == "auto" and quick:
        return Decision(False, f"{new_tokens:,} new tokens are quickly read")
    return Decision(True, "asked for" if settings.mode == "on" else f"{new_tokens:,} tokens are new{takes}")


def refused(settings: Prefill, reason: str) -> Change:
    """The change where everything is read and `settings` allow less."""
    return Change("prefill.mode", settings.mode, "off", reason)
