"""Settings of drafting: the drafter, its parameters (one struct per drafter), the gate and exactness.

Rules that span fields are functions that raise `SettingError`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from core.errors import SettingError
from core.settings.fields import about, choice, number, text

DrafterName = Literal[
    "off", "auto", "ngram-simple", "ngram-mod", "frequency", "cacheback", "draft-model", "mtp"
]
CachebackMode = Literal["dual", "dynamic", "frozen"]
CachebackTree = Literal["planned", "paper"]
GateMode = Literal["auto", "always"]
ExactnessMode = Literal["fast", "exact"]


class Drafting(Struct, frozen=True, forbid_unknown_fields=True):
    """The drafter."""

    drafter: Annotated[
        DrafterName,
        choice(
            {
                "off": ("Off", "Plain decoding, one token at a time."),
                "auto": ("Auto", "Combines all sources of drafts, and drafts as much as saves time."),
                "ngram-simple": ("N-gram simple", "Finds the same words earlier in this chat."),
                "ngram-mod": ("N-gram mod", "Uses a table that grows across chats."),
                "frequency": ("Frequency", "Picks the most common continuation."),
                "cacheback": ("Cacheback", "Keeps the latest continuations, drops the oldest."),
                "draft-model": ("Draft model", "A small model of the same family drafts."),
                "mtp": ("Trained head", "A head that was trained for this model drafts, if there is one."),
            }
        ),
        about(
            "Drafter",
            "Guesses the next tokens. The model checks every guess, so the answer stays the same.",
        ),
    ] = "auto"


class Auto(Struct, frozen=True, forbid_unknown_fields=True):
    """Draftlight's own drafter: combines all evidence, and drafts as much as pays on this machine."""

    remembered: Annotated[
        bool,
        about(
            "Earlier chats",
            "Uses the tables of earlier chats and, if learning is allowed, adds this one. The table of long"
            " runs is shared with ngram-mod.",
        ),
    ] = True


class NgramSimple(Struct, frozen=True, forbid_unknown_fields=True):
    """Prompt lookup (Saxena): copies the text after the longest recent match of the last n tokens."""

    n_max: Annotated[
        int,
        number(1, 16, unit="tokens"),
        about("Longest match", "Maximum tokens compared with earlier text."),
    ] = 4
    n_min: Annotated[
        int, number(1, 16, unit="tokens"), about("Shortest match", "Minimum matching tokens for a draft.")
    ] = 2
    # 7 makes a verify block of 8: the widest that Metal's fast attention kernel accepts, and the best
    # of 2 … 31 on the CPU's cost table.
    k: Annotated[int, number(1, 64, unit="tokens"), about("Draft length", "Tokens per draft.")] = 7


class NgramMod(Struct, frozen=True, forbid_unknown_fields=True):
    """The ngram-mod article: a shared table from the hash of the last n tokens to the next one."""

    n: Annotated[
        int,
        number(2, 32, unit="tokens"),
        about("Context length", "Number of last tokens that are looked up."),
    ] = 16
    k: Annotated[
        int,
        number(1, 64, unit="tokens"),
        about("Draft length", "Tokens per draft. 4, 6 and 8 are good values."),
    ] = 6
    # The article's. Smaller tables lose entries long before they are full, because slots have no tags: a
    # return at 2^22, 2^20 and 2^18 after 300,000 other tokens is 3.3, 2.2 and 1.1 times as fast as plain
    # decoding (resources/notes/tables.md).
    slots: Annotated[
        int,
        number(2**12, 2**22, unit="slots", factor=2),
        about("Table size", "Capacity of the table, a power of two. Each slot uses 4 bytes."),
    ] = 4 * 1024 * 1024


class Frequency(Struct, frozen=True, forbid_unknown_fields=True):
    """akunu's drafter: the most frequent continuation of the last few tokens."""

    order_max: Annotated[
        int,
        number(2, 8, unit="tokens"),
        about("Longest sequence", "Maximum length of counted runs, with the guessed token."),
    ] = 4
    k: Annotated[int, number(1, 64, unit="tokens"), about("Draft length", "Tokens per draft.")] = 4


class Cacheback(Struct, frozen=True, forbid_unknown_fields=True):
    """The Cacheback paper: recent continuations, drafted as a tree."""

    mode: Annotated[
        CachebackMode,
        choice(
            {
                "dual": ("Both", "This chat’s table first, then the one learned beforehand."),
                "dynamic": ("This chat", "Only this chat’s table."),
                "frozen": ("Learned beforehand", "Only the table learned beforehand."),
            }
        ),
        about("Tables", "Which tables are used: this chat’s, one learned beforehand, or both."),
    ] = "dual"
    frozen_file: Annotated[
        str,
        text(4096, lines=1, names="file", empty="The family’s newest"),
        about(
            "Table file",
            "A table learned beforehand for this tokenizer. Empty uses the newest one of this family, built"
            " or shipped.",
        ),
    ] = ""
    # Verifying all of the paper's tree halves the speed where rows are not free: resources/notes/tables.md.
    tree: Annotated[
        CachebackTree,
        choice(
            {
                "planned": ("As much as pays", "The most likely guesses, as many as pay on this machine."),
                "paper": ("As in the paper", "The entire tree of the sizes below, whatever it costs."),
            }
        ),
        about("Tree", "Which part of the drafted tree is checked at once."),
    ] = "planned"
    leader_tokens: Annotated[
        int,
        number(1, 8, unit="tokens"),
        about("Leader length", "Number of last tokens that are looked up (LL)."),
    ] = 1
    follower_tokens: Annotated[
        int, number(1, 16, unit="tokens"), about("Follower length", "Tokens stored after each leader (FL).")
    ] = 3
    leader_capacity: Annotated[
        int,
        number(16, 2**22, unit="leaders"),
        about("Leaders kept", "Capacity of the table; the least recently used leader is evicted (LC)."),
    ] = 2**20
    follower_capacity: Annotated[
        int,
        number(1, 1024, unit="followers"),
        about("Followers kept", "Capacity per leader; the least recently seen follower is evicted (FC)."),
    ] = 128
    tree_tokens: Annotated[
        int,
        number(2, 256, unit="tokens"),
        about("Tree size", "Maximum tokens per step, with the last known one (TDL)."),
    ] = 96
    reserved_tokens: Annotated[
        int,
        number(0, 255, unit="tokens"),
        about(
            "Kept for depth", "Tokens of the paper’s tree reserved for its second and deeper levels (CRT)."
        ),
    ] = 16


class DraftModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A smaller model of the same tokenizer family drafts a chain (the ngram-mod article's comparison)."""

    model: Annotated[
        str,
        text(4096, lines=1, names="model", empty="None chosen"),
        about("Model", "A model folder or hub name with the same tokenizer."),
    ] = ""
    k: Annotated[int, number(1, 32, unit="tokens"), about("Draft length", "Tokens per draft.")] = 6


class Mtp(Struct, frozen=True, forbid_unknown_fields=True):
    """A head that was trained for the model drafts a chain."""

    # Heads are trained to guess one token; each further guess is less likely.
    k: Annotated[int, number(1, 8, unit="tokens"), about("Draft length", "Tokens per draft.")] = 3


class Gate(Struct, frozen=True, forbid_unknown_fields=True):
    """When drafting is tried."""

    mode: Annotated[
        GateMode,
        choice(
            {
                "auto": (
                    "Adaptive",
                    "Pauses drafting while it slows answers down, and tries again later.",
                ),
                "always": ("Always", "Drafts at every step, even if it is slower."),
            }
        ),
        about("Draft gating", "Whether drafting pauses while it does not pay."),
    ] = "auto"


class Decoding(Struct, frozen=True, forbid_unknown_fields=True):
    """How a draft is verified."""

    exactness: Annotated[
        ExactnessMode,
        choice(
            {
                "fast": ("Fast", "Drafts may decide between two words that are almost equally likely."),
                "exact": ("Exact", "Limits drafts to lengths that proved exact in 15,000 comparisons."),
            }
        ),
        about("Exactness", "Checking several tokens at once can round differently from one at a time."),
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
