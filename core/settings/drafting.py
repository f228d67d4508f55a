"""Settings of drafting: the drafter, its parameters (one struct per drafter), the gate and exactness.

Rules that span fields are functions that raise `SettingError`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from core.errors import SettingError
from core.settings.fields import choice, number, switch, text

DrafterName = Literal[
    "off", "auto", "ngram-simple", "ngram-mod", "frequency", "cacheback", "draft-model", "mtp"
]
CachebackMode = Literal["dual", "dynamic", "frozen"]
CachebackTree = Literal["planned", "paper"]
GateMode = Literal["auto", "always"]
ExactnessMode = Literal["fast", "guarded", "exact"]


class Drafting(Struct, frozen=True, forbid_unknown_fields=True):
    """The drafter."""

    drafter: Annotated[
        DrafterName,
        choice(
            "Drafter",
            "Who guesses the next tokens. Every guess is checked by the model, so the answer stays the same.",
            {
                "off": "Off",
                "auto": "Auto",
                "ngram-simple": "N-gram simple",
                "ngram-mod": "N-gram mod",
                "frequency": "Frequency",
                "cacheback": "Cacheback",
                "draft-model": "Draft model",
                "mtp": "MTP head",
            },
            {
                "off": "Plain decoding, one token at a time.",
                "auto": "Combines all evidence and drafts as much as pays.",
                "ngram-simple": "Finds the same words earlier in this chat.",
                "ngram-mod": "Uses a table that grows across chats.",
                "frequency": "Picks the most common continuation.",
                "cacheback": "Keeps the latest continuations, drops the oldest.",
                "draft-model": "A small model of the same family drafts.",
                "mtp": "The model’s own head for further tokens drafts, if its files include one.",
            },
        ),
    ] = "auto"


class Auto(Struct, frozen=True, forbid_unknown_fields=True):
    """Draftlight's own drafter: all evidence, as much of it as pays on this machine."""

    # Recorded answers gained nothing from more, on a CPU's cost table and on Apple's.
    most_tokens: Annotated[
        int,
        number(
            1,
            64,
            "Max draft tokens",
            "Maximum tokens per draft. Checks fewer if fewer pay.",
            unit="tokens",
        ),
    ] = 16
    alternatives: Annotated[
        int,
        number(
            1, 8, "Branches per position", "Maximum guesses per position. 1 drafts a chain.", unit="guesses"
        ),
    ] = 3
    # The cheapest row of the shipped cost tables costs 0.015 plain steps, at 1.5 tokens each.
    least_chance: Annotated[
        float,
        number(0.001, 1.0, "Min probability", "Minimum probability of a drafted token.", step=0.005),
    ] = 0.02
    learned: Annotated[
        bool,
        switch(
            "Learned table",
            "Uses a table of this model family's typical answers, if one is installed.",
        ),
    ] = True
    texts: Annotated[
        bool,
        switch("Learned texts", "Uses tables built from texts with: draftlight tables build --for auto."),
    ] = True
    remembered: Annotated[
        bool,
        switch(
            "Earlier chats",
            "Uses the table of earlier chats and, if learning is allowed, adds this one. It is shared with"
            " ngram-mod.",
        ),
    ] = True
    head: Annotated[
        bool,
        switch(
            "MTP head",
            "Asks the model’s own head for further tokens, if its files include one and while it pays.",
        ),
    ] = True
    draft_model: Annotated[
        bool,
        switch(
            "Draft model",
            "Asks the chosen draft model where other evidence is uncertain and while it pays.",
        ),
    ] = False


class NgramSimple(Struct, frozen=True, forbid_unknown_fields=True):
    """Prompt lookup (Saxena): copies the text after the longest recent match of the last n tokens."""

    n_max: Annotated[
        int, number(1, 16, "Longest match", "Maximum tokens compared with earlier text.", unit="tokens")
    ] = 4
    n_min: Annotated[
        int, number(1, 16, "Shortest match", "Minimum matching tokens for a draft.", unit="tokens")
    ] = 2
    # 7 makes a verify block of 8: the widest that Metal's fast attention kernel takes, and the best
    # of 2 … 31 on the CPU's cost table.
    k: Annotated[int, number(1, 64, "Draft length", "Tokens per draft.", unit="tokens")] = 7


class NgramMod(Struct, frozen=True, forbid_unknown_fields=True):
    """The ngram-mod article: a shared table from the hash of the last n tokens to the next one."""

    n: Annotated[
        int, number(2, 32, "Context length", "Number of last tokens that are looked up.", unit="tokens")
    ] = 16
    k: Annotated[
        int, number(1, 64, "Draft length", "Tokens per draft. 4, 6 and 8 are good values.", unit="tokens")
    ] = 6
    # The article's. Smaller tables lose entries long before they are full, because slots have no tags: a
    # return at 2^22, 2^20 and 2^18 after 300,000 other tokens is 3.3, 2.2 and 1.1 times as fast as plain
    # decoding (resources/notes/tables.md).
    slots: Annotated[
        int,
        number(
            2**12,
            2**22,
            "Table size",
            "Capacity of the table, a power of two. Each slot uses 4 bytes.",
            unit="slots",
            factor=2,
        ),
    ] = 4 * 1024 * 1024


class Frequency(Struct, frozen=True, forbid_unknown_fields=True):
    """akunu's drafter: the most frequent continuation of the last few tokens."""

    order_max: Annotated[
        int,
        number(
            2, 8, "Longest sequence", "Maximum length of counted runs, with the guessed token.", unit="tokens"
        ),
    ] = 4
    k: Annotated[int, number(1, 64, "Draft length", "Tokens per draft.", unit="tokens")] = 4
    window_tokens: Annotated[
        int, number(16, 65536, "Window", "Number of latest tokens that are counted.", unit="tokens")
    ] = 512


class Cacheback(Struct, frozen=True, forbid_unknown_fields=True):
    """The Cacheback paper: recent continuations, drafted as a tree."""

    mode: Annotated[
        CachebackMode,
        choice(
            "Tables",
            "Which tables are used: this chat's, one learned beforehand, or both.",
            {"dual": "Both", "dynamic": "This chat", "frozen": "Learned beforehand"},
            {
                "dual": "This chat's table first, then the one learned beforehand.",
                "dynamic": "Only this chat's table.",
                "frozen": "Only the table learned beforehand.",
            },
        ),
    ] = "dual"
    frozen_file: Annotated[
        str,
        text(
            4096,
            "Table file",
            "A table learned beforehand for this tokenizer. Empty uses the newest one of this family, built"
            " or shipped.",
            lines=1,
            names="file",
            empty="The family’s newest",
        ),
    ] = ""
    # The paper's, verified whole, halves the speed where rows are not free: resources/notes/tables.md.
    tree: Annotated[
        CachebackTree,
        choice(
            "Tree",
            "Which part of the drafted tree is checked at once.",
            {"planned": "As much as pays", "paper": "As in the paper"},
            {
                "planned": "The most likely guesses, as many as pay on this machine.",
                "paper": "The entire tree of the sizes below, whatever it costs.",
            },
        ),
    ] = "planned"
    leader_tokens: Annotated[
        int, number(1, 8, "Leader length", "Number of last tokens that are looked up (LL).", unit="tokens")
    ] = 1
    follower_tokens: Annotated[
        int, number(1, 16, "Follower length", "Tokens stored after each leader (FL).", unit="tokens")
    ] = 3
    leader_capacity: Annotated[
        int,
        number(
            16,
            2**22,
            "Leaders kept",
            "Capacity of the table; the least recently used leader is evicted (LC).",
            unit="leaders",
        ),
    ] = 2**20
    follower_capacity: Annotated[
        int,
        number(
            1,
            1024,
            "Followers kept",
            "Capacity per leader; the least recently seen follower is evicted (FC).",
            unit="followers",
        ),
    ] = 128
    tree_tokens: Annotated[
        int,
        number(
            2,
            256,
            "Tree size",
            "Maximum tokens per step, with the last known one (TDL).",
            unit="tokens",
        ),
    ] = 96
    reserved_tokens: Annotated[
        int,
        number(
            0,
            255,
            "Kept for depth",
            "Tokens of the paper's tree reserved for its second and deeper levels (CRT).",
            unit="tokens",
        ),
    ] = 16


class DraftModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A smaller model of the same tokenizer family drafts a chain (the ngram-mod article's comparison)."""

    model: Annotated[
        str,
        text(
            4096,
            "Model",
            "A model folder or hub name with the same tokenizer.",
            lines=1,
            names="model",
            empty="None chosen",
        ),
    ] = ""
    k: Annotated[int, number(1, 32, "Draft length", "Tokens per draft.", unit="tokens")] = 6
    stop_below: Annotated[
        float,
        number(
            0.0,
            1.0,
            "Stop below",
            "A guess with a lower draft probability ends the draft.",
            step=0.05,
        ),
    ] = 0.4


class Mtp(Struct, frozen=True, forbid_unknown_fields=True):
    """The model's own head for multi-token prediction drafts a chain."""

    # Heads are trained to guess one token; each further guess is less likely.
    k: Annotated[int, number(1, 8, "Draft length", "Tokens per draft.", unit="tokens")] = 3
    stop_below: Annotated[
        float,
        number(
            0.0,
            1.0,
            "Stop below",
            "A guess with a lower probability ends the draft.",
            step=0.05,
        ),
    ] = 0.4


class Gate(Struct, frozen=True, forbid_unknown_fields=True):
    """When drafting is tried."""

    mode: Annotated[
        GateMode,
        choice(
            "Draft gating",
            "Whether drafting pauses while it does not pay.",
            {"auto": "Adaptive", "always": "Always"},
            {
                "auto": "Pauses drafting while few guesses are accepted, and tries again later.",
                "always": "Drafts at every step, even if it is slower.",
            },
        ),
    ] = "auto"
    repetition: Annotated[
        float,
        number(
            0.0,
            1.0,
            "Min repetition",
            "Drafting starts with a pause if a smaller share of the prompt's trigrams repeats.",
            step=0.01,
        ),
    ] = 0.02
    rest_tokens: Annotated[
        int,
        number(
            1,
            4096,
            "Try again after",
            "Tokens before drafting is tried again. Doubles after each failed try.",
            unit="tokens",
        ),
    ] = 8


class Decoding(Struct, frozen=True, forbid_unknown_fields=True):
    """How a draft is verified."""

    exactness: Annotated[
        ExactnessMode,
        choice(
            "Exactness",
            "Checking several tokens at once can round differently from one at a time.",
            {"fast": "Fast", "guarded": "Guarded", "exact": "Exact"},
            {
                "fast": "Accepts the model's choice at any width.",
                "guarded": "Repeats close calls with a plain step.",
                "exact": "Drafts only widths that matched in 15,000 compared rows.",
            },
        ),
    ] = "fast"


def check_slots(slots: int) -> None:
    """Raises `SettingError` unless `slots` is a power of two from 2^12 to 2^22."""
    if not 2**12 <= slots <= 2**22 or slots & (slots - 1):
        raise SettingError(
            f"A table of {slots:,} slots is not possible.",
            "Use a power of two from 4,096 to 4,194,304 for ngram_mod.slots.",
        )


def check_cacheback(settings: Cacheback) -> None:
    """Raises `SettingError` if the reserved tokens leave no space for a first level.

    The tree's root takes one token, a first level at least one more.
    """
    if settings.reserved_tokens > settings.tree_tokens - 2:
        raise SettingError(
            f"Keeping {settings.reserved_tokens} tokens for depth leaves no space in a tree"
            f" of {settings.tree_tokens}.",
            f"Set cacheback.reserved_tokens to at most {settings.tree_tokens - 2}, or enlarge"
            " cacheback.tree_tokens.",
        )


class DrafterGroups(Struct, frozen=True, forbid_unknown_fields=True):
    """The drafter, and a group of parameters for each, named like it (`ngram_simple`)."""

    drafting: Drafting = field(default_factory=Drafting)
    auto: Auto = field(default_factory=Auto)
    ngram_simple: NgramSimple = field(default_factory=NgramSimple)
    ngram_mod: NgramMod = field(default_factory=NgramMod)
    frequency: Frequency = field(default_factory=Frequency)
    cacheback: Cacheback = field(default_factory=Cacheback)
    draft_model: DraftModel = field(default_factory=DraftModel)
    mtp: Mtp = field(default_factory=Mtp)
