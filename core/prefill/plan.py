"""Plan: all of the prompt or the parts that matter, and why. Pure.

Three questions at three moments. Before the cache is looked at: must all be read whatever it costs
(`why_whole`)? Then only a context without gaps may be reused. After it, when it is known how many tokens are
new: would reading all of them take too long (`decide`)? And if so, when a scorer has run: does anything in
the text stand out for this question (`Scored.stands_out`)?

`auto` reads everything where a question asks for what is spread over all of it, where that is soon done,
and where nothing stands out.
"""

from __future__ import annotations

from msgspec import Struct

from core.events import Change
from core.prefill.every_token import needs_every_token
from core.settings.prefill import Prefill

ASKS_FOR_ALL = "this asks for the whole document, so all of it was read"
NOTHING_STANDS_OUT = "nothing in the text stands out for this question, so all of it was read"


class Decision(Struct, frozen=True):
    """`sparse`, why in words, and the change if something else was asked for."""

    sparse: bool
    reason: str
    change: Change | None = None


def why_whole(settings: Prefill, question: str) -> str:
    """Why every token must have been read, in words; empty if gaps are allowed."""
    if settings.mode == "off":
        return "sparse prefill is off"
    if settings.keep_pct >= 100:
        return "all of the text is kept"
    if settings.mode == "auto" and needs_every_token(question):
        return ASKS_FOR_ALL
    return ""


def beyond(settings: Prefill, whole: str, prompt_tokens: int) -> Decision:
    """A prompt longer than the context: passages that fit are read, whatever was wanted of all of it."""
    reason = f"{prompt_tokens:,} tokens are more than the context takes, so the passages that fit are read"
    change = Change("prefill.keep_pct", "100", f"{settings.keep_pct:g}", reason) if whole else None
    return Decision(True, reason, change)


def decide(settings: Prefill, whole: str, new_tokens: int, dense_s: float | None = None) -> Decision:
    """`whole` is what `why_whole` said, `new_tokens` what the cache does not hold yet.

    `dense_s`: how long reading all of them would take, None if that is not known.
    """
    quick = settings.is_quick(new_tokens, dense_s)
    if whole:
        # Nothing was refused if it had been quickly read anyway.
        asked = settings.mode == "auto" and settings.keep_pct < 100 and not quick
        return Decision(False, whole, refused(settings, whole) if asked else None)
    takes = "" if dense_s is None else f", about {dense_s:.0f} s to read whole"
    if settings.mode == "auto" and quick:
        return Decision(False, f"{new_tokens:,} new tokens are quickly read")
    return Decision(True, "asked for" if settings.mode == "on" else f"{new_tokens:,} tokens are new{takes}")


def refused(settings: Prefill, reason: str) -> Change:
    """Everything is read, though `settings` asked for less."""
    return Change("prefill.mode", settings.mode, "off", reason)
