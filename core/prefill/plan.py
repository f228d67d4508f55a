"""Plan: all of the prompt or the parts that matter, and why. Pure.

Two questions at two moments. Before the cache is looked at: must all be read whatever it costs
(`why_whole`)? Then only a context without gaps may be reused. After it, when it is known how
many tokens are new: are they enough to be worth it (`decide`)?

`auto` reads everything where a question asks for what is spread over all of it.
"""

from __future__ import annotations

from msgspec import Struct

from core.events import Change
from core.prefill.every_token import needs_every_token
from core.settings.prefill import Prefill

ASKS_FOR_ALL = "this asks for the whole document, so all of it was read"


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


def decide(settings: Prefill, whole: str, new_tokens: int) -> Decision:
    """`whole` is what `why_whole` said, `new_tokens` what the cache does not hold yet."""
    short = new_tokens < settings.threshold_tokens
    if whole:
        # Nothing was refused if it had been too short anyway.
        asked = settings.mode == "auto" and settings.keep_pct < 100 and not short
        return Decision(False, whole, refused(settings, whole) if asked else None)
    if settings.mode == "auto" and short:
        return Decision(False, f"{new_tokens:,} new tokens are quickly read")
    return Decision(True, "asked for" if settings.mode == "on" else f"{new_tokens:,} tokens are new")


def refused(settings: Prefill, reason: str) -> Change:
    """Everything is read, though `settings` asked for less."""
    return Change("prefill.mode", settings.mode, "off", reason)
