"""Settings without effect because of other settings, and the reason. Their values are kept."""

from __future__ import annotations

from collections.abc import Iterator

from core.settings.request import Settings

_READS_EVERYTHING = "Not used while sparse prefill is off."
_KEEPS_EVERYTHING = "Not used while all of the text is kept."
_ALWAYS_SPARSE = "Not used while sparse prefill is always on."
_GREEDY = "Not used at temperature 0, which always takes the most likely token."
_OWN_SEEDS = "Not used while each answer draws a new seed."
_NO_DRAFTER = "Not used while the drafter is off."
_ALWAYS_DRAFTS = "Not used while drafting is always on."
_NO_LEARNED_TABLE = "Not used with only this chat’s table."
_ONLY_LEARNED_TABLE = "Not used with only the table learned beforehand."
_PLANNED_TREE = "Not used unless the tree is as in the paper."
_SAVES_NOTHING = "Not used while this chat is not saved on disk."
_LEARNS_NOTHING = "Not used while nothing is learned from this chat."

_SPARSE = (
    "keep_pct",
    "threshold_tokens",
    "patience_s",
    "scorer",
    "passages",
    "read_on",
    "finish_reading",
)
# Greedy answers draw no tokens and need no seed.
_DRAWS = ("top_p", "min_p", "top_k", "seed", "new_seed")


def unused(settings: Settings) -> dict[str, str]:
    """A sentence per unused key. A drafter's parameters count as if it was chosen."""
    # The first reason is the one to change first.
    reasons: dict[str, str] = {}
    for key, why in _all(settings):
        reasons.setdefault(key, why)
    return reasons


def _all(settings: Settings) -> Iterator[tuple[str, str]]:
    prefill = settings.prefill
    if prefill.mode == "off":
        yield from ((f"prefill.{name}", _READS_EVERYTHING) for name in _SPARSE)
    elif prefill.keep_pct >= 100:
        yield from ((f"prefill.{name}", _KEEPS_EVERYTHING) for name in _SPARSE if name != "keep_pct")
    if prefill.mode == "on":
        yield from ((f"prefill.{name}", _ALWAYS_SPARSE) for name in ("threshold_tokens", "patience_s"))
    if not prefill.save:
        yield from ((f"prefill.{name}", _SAVES_NOTHING) for name in ("disk_mib", "disk_daily_mib"))
    if settings.sampling.temperature == 0:
        yield from ((f"sampling.{name}", _GREEDY) for name in _DRAWS)
    elif settings.sampling.new_seed == "always":
        yield "sampling.seed", _OWN_SEEDS
    if settings.drafting.drafter == "off":
        yield from ((key, _NO_DRAFTER) for key in ("gate.mode", "gate.repetition", "gate.rest_tokens"))
        yield "decoding.exactness", _NO_DRAFTER
    if settings.gate.mode == "always":
        yield from ((key, _ALWAYS_DRAFTS) for key in ("gate.repetition", "gate.rest_tokens"))

    if not settings.tables.learn:
        yield "tables.autosave_s", _LEARNS_NOTHING
    yield from _of_drafters(settings)


def _of_drafters(settings: Settings) -> Iterator[tuple[str, str]]:

    cacheback = settings.cacheback
    if cacheback.mode == "dynamic":
        yield "cacheback.frozen_file", _NO_LEARNED_TABLE
    if cacheback.mode == "frozen":
        for name in ("leader_capacity", "follower_capacity"):
            yield f"cacheback.{name}", _ONLY_LEARNED_TABLE
    if cacheback.tree == "planned":
        yield "cacheback.reserved_tokens", _PLANNED_TREE
