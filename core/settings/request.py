"""Settings of one request, a frozen snapshot, with their sampling, table and chat groups."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from core.settings.drafting import Decoding, DrafterGroups, Gate
from core.settings.fields import about, choice, number, text
from core.settings.prefill import KvCache, Prefill

ThinkingMode = Literal["auto", "on", "off"]
# Settings that a model's generation_config.json may provide.
FROM_MODEL = (
    "sampling.temperature",
    "sampling.top_p",
    "sampling.min_p",
    "sampling.top_k",
    "sampling.repetition_penalty",
    "sampling.frequency_penalty",
    "sampling.no_repeat_ngram_size",
)
SEEDS = 2**31


class Sampling(Struct, frozen=True, forbid_unknown_fields=True):
    """How tokens are drawn. Temperature 0 is greedy, without filters."""

    temperature: Annotated[
        float,
        number(0.0, 2.0, step=0.05),
        about("Temperature", "0 always takes the most likely token. Higher is more varied."),
    ] = 0.0
    top_p: Annotated[
        float,
        number(0.0, 1.0, step=0.01, above=True),
        about("Top-p", "Draws from the most likely tokens that together reach this probability."),
    ] = 1.0
    min_p: Annotated[
        float,
        number(0.0, 1.0, step=0.01),
        about("Min-p", "Drops tokens less likely than this share of the most likely one."),
    ] = 0.0
    top_k: Annotated[
        int,
        number(0, 1000, unit="tokens"),
        about("Top-k", "Draws from this number of most likely tokens. 0 means all."),
    ] = 0
    repetition_penalty: Annotated[
        float,
        number(0.5, 2.0, step=0.05),
        about("Repetition penalty", "Above 1, the last 64 tokens become less likely. 1 is off."),
    ] = 1.0
    frequency_penalty: Annotated[
        float,
        number(-2.0, 2.0, step=0.05),
        about("Frequency penalty", "Above 0, tokens become less likely each time they are used. 0 is off."),
    ] = 0.0
    presence_penalty: Annotated[
        float,
        number(-2.0, 2.0, step=0.05),
        about("Presence penalty", "Above 0, tokens that were used once become less likely. 0 is off."),
    ] = 0.0
    no_repeat_ngram_size: Annotated[
        int,
        number(0, 64, unit="tokens"),
        about(
            "No repeat",
            "A sequence of this many tokens occurs only once in an answer. Prevents loops; small numbers also"
            " prevent lists and code. 0 is off.",
        ),
    ] = 0
    max_tokens: Annotated[
        int, number(1, 131072, unit="tokens"), about("Length", "Maximum length of an answer.")
    ] = 1024
    seed: Annotated[
        int,
        number(0, SEEDS - 1, random=True),
        about("Seed", "The same seed, prompt and settings give the same answer."),
    ] = 42


class Tables(Struct, frozen=True, forbid_unknown_fields=True):
    """Tables that persist between chats."""

    learn: Annotated[
        bool,
        about(
            "Learn from this chat",
            "Tables remember short runs of words to draft in later chats. Off: this chat adds nothing"
            " to them.",
        ),
    ] = True


class Chat(Struct, frozen=True, forbid_unknown_fields=True):
    """The system prompt and thinking."""

    system_prompt: Annotated[
        str,
        text(100000, lines=3, empty="The model’s own"),
        about("System prompt", "Instructions before the chat. Empty uses the model’s own."),
    ] = ""
    thinking: Annotated[
        ThinkingMode,
        choice({"auto": ("Model’s choice", "The model’s chat template decides."), "on": "On", "off": "Off"}),
        about("Think first", "The model thinks before it answers, if its chat template has a switch for it."),
    ] = "auto"


class Settings(DrafterGroups, frozen=True, forbid_unknown_fields=True):
    """All settings of one request; each field is a group, the drafters' first."""

    gate: Gate = field(default_factory=Gate)
    decoding: Decoding = field(default_factory=Decoding)
    sampling: Sampling = field(default_factory=Sampling)
    prefill: Prefill = field(default_factory=Prefill)
    kv: KvCache = field(default_factory=KvCache)
    tables: Tables = field(default_factory=Tables)
    chat: Chat = field(default_factory=Chat)


def new_seed() -> int:
    """A random seed."""
    return secrets.randbelow(SEEDS)


def drawn_again(settings: Settings) -> Settings:
    """`settings` for another answer to the same question: with a new seed."""
    return replace(settings, sampling=replace(settings.sampling, seed=new_seed()))


# ---- settings without effect


_READS_EVERYTHING = "Not used while sparse prefill is off."
_KEEPS_EVERYTHING = "Not used while all of the text is kept."
_AUTOMATIC = ("threshold_tokens", "patience_s", "read_ahead")
_ALWAYS_SPARSE = "Not used while sparse prefill is always on."
_GREEDY = "Not used at temperature 0, which always takes the most likely token."
_NO_DRAFTER = "Not used while the drafter is off."
_NO_LEARNED_TABLE = "Not used with only this chat’s table."
_ONLY_LEARNED_TABLE = "Not used with only the table learned beforehand."
_PLANNED_TREE = "Not used unless the tree is as in the paper."

_SPARSE = (
    "keep_pct",
    "threshold_tokens",
    "patience_s",
    "scorer",
    "passages",
    "read_on",
)
# Greedy answers draw no tokens and need no seed.
_DRAWS = ("top_p", "min_p", "top_k", "seed")


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
        yield from ((f"prefill.{name}", _ALWAYS_SPARSE) for name in _AUTOMATIC)
    if settings.sampling.temperature == 0:
        yield from ((f"sampling.{name}", _GREEDY) for name in _DRAWS)
    if settings.drafting.drafter == "off":
        yield from ((key, _NO_DRAFTER) for key in ("gate.mode", "decoding.exactness"))
    cacheback = settings.cacheback
    if cacheback.mode == "dynamic":
        yield "cacheback.frozen_file", _NO_LEARNED_TABLE
    if cacheback.mode == "frozen":
        for name in ("leader_capacity", "follower_capacity"):
            yield f"cacheback.{name}", _ONLY_LEARNED_TABLE
    if cacheback.tree == "planned":
        yield "cacheback.reserved_tokens", _PLANNED_TREE
