"""Settings of the drafters: which one guesses, each one's parameters (one struct a drafter).

Rules that span fields are functions here that raise `SettingError`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from core.errors import SettingError

DrafterName = Literal["off", "auto", "ngram-simple", "ngram-mod", "frequency", "cacheback", "draft-model"]
PoorDrafts = Literal["pause", "reset"]
CountsKept = Literal["window", "all"]
CachebackMode = Literal["dual", "dynamic", "frozen"]
CachebackTree = Literal["planned", "paper"]


class Drafting(Struct, frozen=True, forbid_unknown_fields=True):
    """Which drafter guesses ahead."""

    drafter: Annotated[
        DrafterName,
        Meta(
            title="Drafter",
            description="Who guesses the next tokens. Every guess is checked by the model,"
            " so the answer stays the same.",
            extra={
                "labels": {
                    "off": "Off",
                    "auto": "Auto",
                    "ngram-simple": "N-gram simple",
                    "ngram-mod": "N-gram mod",
                    "frequency": "Frequency",
                    "cacheback": "Cacheback",
                    "draft-model": "Draft model",
                },
                "notes": {
                    "off": "Plain decoding, one token at a time.",
                    "auto": "Tries every kind of evidence and drafts as much as pays.",
                    "ngram-simple": "Looks for the same words earlier in this chat.",
                    "ngram-mod": "Uses the table, which grows across chats.",
                    "frequency": "Picks the most common continuation.",
                    "cacheback": "Keeps the latest continuations, drops the oldest.",
                    "draft-model": "A small model of the same family guesses ahead.",
                },
            },
        ),
    ] = "auto"


class Auto(Struct, frozen=True, forbid_unknown_fields=True):
    """Draftlight's own: every kind of evidence, as much of it as pays on this machine."""

    # Recorded answers gained nothing from more, on a CPU's cost table and on Apple's.
    most_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Max draft tokens",
            description="The most tokens guessed at once. Fewer are checked where fewer pay.",
            extra={"unit": "tokens"},
        ),
    ] = 16
    alternatives: Annotated[
        int,
        Meta(
            ge=1,
            le=8,
            title="Branches per position",
            description="How many different guesses may be made for one place. 1 guesses a chain.",
            extra={"unit": "guesses"},
        ),
    ] = 3
    # The cheapest row of the shipped cost tables costs 0.015 plain steps, at 1.5 tokens each.
    least_chance: Annotated[
        float,
        Meta(
            ge=0.001,
            le=1.0,
            title="Min probability",
            description="A guess that is less likely than this to be reached is not made.",
            extra={"step": 0.005},
        ),
    ] = 0.02
    learned: Annotated[
        bool,
        Meta(
            title="Learned table",
            description="Also goes by what models of this family tend to say, if a table of that is at hand.",
        ),
    ] = True
    texts: Annotated[
        bool,
        Meta(
            title="Learned texts",
            description="Also goes by texts a table was built from: draftlight tables build --for auto.",
        ),
    ] = True
    remembered: Annotated[
        bool,
        Meta(
            title="Earlier chats",
            description="Also goes by what was said in earlier chats, and remembers this one if it may."
            " The table is ngram-mod's.",
        ),
    ] = True


class NgramSimple(Struct, frozen=True, forbid_unknown_fields=True):
    """Prompt lookup: the longest recent match of the last n tokens, copied onwards (Saxena's prompt
    lookup)."""

    n_max: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            title="Longest match",
            description="The most tokens that are compared with earlier text.",
            extra={"unit": "tokens"},
        ),
    ] = 4
    n_min: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            title="Shortest match",
            description="The fewest tokens that must match before anything is drafted.",
            extra={"unit": "tokens"},
        ),
    ] = 2
    # 7 makes a verify block of 8: the widest that Metal's fast attention kernel takes, and the best
    # of 2 … 31 on the CPU's cost table.
    k: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Draft length",
            description="How many tokens are guessed at once.",
            extra={"unit": "tokens"},
        ),
    ] = 7


class NgramMod(Struct, frozen=True, forbid_unknown_fields=True):
    """A table from the hash of the last n tokens to the next one, shared by all chats (the ngram-mod
    article)."""

    n: Annotated[
        int,
        Meta(
            ge=2,
            le=32,
            title="Context length",
            description="How many tokens in a row decide what is guessed next.",
            extra={"unit": "tokens"},
        ),
    ] = 16
    k: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Draft length",
            description="How many tokens are guessed at once. 4, 6 and 8 are good values.",
            extra={"unit": "tokens"},
        ),
    ] = 6
    # The seed's. Smaller tables lose what is asked for again long before they are full, as slots have
    # no tags: a return at 2^22, 2^20 and 2^18 after 300,000 other tokens is 3.3, 2.2 and 1.1 times as
    # fast as plain decoding (resources/notes/tables.md).
    slots: Annotated[
        int,
        Meta(
            ge=2**12,
            le=2**22,
            title="Table size",
            description="How many guesses the table can hold, a power of two. Each takes 4 bytes.",
            extra={"unit": "slots", "factor": 2},
        ),
    ] = 4 * 1024 * 1024
    low_acceptance: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Low acceptance",
            description="A draft of which a smaller share is accepted counts as a poor one.",
            extra={"step": 0.05},
        ),
    ] = 0.5
    low_streak: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Poor drafts in a row",
            description="After this many the answer does what is chosen below.",
            extra={"unit": "drafts"},
        ),
    ] = 3
    # Seed 001 wipes its table. Others share this one, so a reset is this answer's alone.
    poor_drafts: Annotated[
        PoorDrafts,
        Meta(
            title="After poor drafts",
            description="What an answer does after poor drafts in a row. The shared table is never wiped.",
            extra={
                "labels": {"pause": "Pause", "reset": "Reset"},
                "notes": {
                    "pause": "Goes on without drafts for a while.",
                    "reset": "Goes on with an empty table of its own, for the rest of this answer.",
                },
            },
        ),
    ] = "pause"
    pause_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=4096,
            title="Pause",
            description="How long it stops drafting after poor drafts. It doubles if they stay poor.",
            extra={"unit": "tokens"},
        ),
    ] = 8


class Frequency(Struct, frozen=True, forbid_unknown_fields=True):
    """The most frequent continuation of the last few tokens (akunu's drafter)."""

    order_max: Annotated[
        int,
        Meta(
            ge=2,
            le=8,
            title="Longest sequence",
            description="The longest run of tokens that is counted, the guessed one included.",
            extra={"unit": "tokens"},
        ),
    ] = 4
    k: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            title="Draft length",
            description="How many tokens are guessed at once.",
            extra={"unit": "tokens"},
        ),
    ] = 4
    window_tokens: Annotated[
        int,
        Meta(
            ge=16,
            le=65536,
            title="Window",
            description="Only this many of the latest tokens are counted, or looked at.",
            extra={"unit": "tokens"},
        ),
    ] = 512
    counts: Annotated[
        CountsKept,
        Meta(
            title="Counts",
            description="Whether what has left the window still counts.",
            extra={
                "labels": {"window": "Of the window", "all": "All"},
                "notes": {
                    "window": "Counts leave with the tokens.",
                    "all": "Counts stay until the answer ends, and take memory with its length.",
                },
            },
        ),
    ] = "window"
    low_streak: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            title="Reset after",
            description="So many drafts in a row, of which less than half came, empty the counts. 0: never.",
            extra={"unit": "drafts"},
        ),
    ] = 0


class Cacheback(Struct, frozen=True, forbid_unknown_fields=True):
    """What recently followed what, grown into a tree of guesses (the Cacheback paper)."""

    mode: Annotated[
        CachebackMode,
        Meta(
            title="Tables",
            description="Which tables are asked: this chat's, the one learned beforehand, or both.",
            extra={
                "labels": {"dual": "Both", "dynamic": "This chat", "frozen": "Learned beforehand"},
                "notes": {
                    "dual": "Asks this chat's table first, then the one learned beforehand.",
                    "dynamic": "Asks only the table of this chat.",
                    "frozen": "Asks only the table learned beforehand.",
                },
            },
        ),
    ] = "dual"
    frozen_file: Annotated[
        str,
        Meta(
            max_length=4096,
            title="Table file",
            description="A table learned beforehand for this tokenizer. Empty takes the newest one of this"
            " family, built here or shipped; “This chat” above takes none.",
            extra={"lines": 1, "names": "file", "empty": "The family’s newest"},
        ),
    ] = ""
    # The paper's, verified whole, halves the speed where rows are not free: resources/notes/tables.md.
    tree: Annotated[
        CachebackTree,
        Meta(
            title="Tree",
            description="How much of what the tables say is checked at once.",
            extra={
                "labels": {"planned": "As much as pays", "paper": "As in the paper"},
                "notes": {
                    "planned": "The likeliest guesses, as many as pay on this machine.",
                    "paper": "The whole tree of the sizes below, however many pay.",
                },
            },
        ),
    ] = "planned"
    leader_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=8,
            title="Leader length",
            description="How many last tokens are looked up (LL).",
            extra={"unit": "tokens"},
        ),
    ] = 1
    follower_tokens: Annotated[
        int,
        Meta(
            ge=1,
            le=16,
            title="Follower length",
            description="How many tokens are remembered after each leader (FL).",
            extra={"unit": "tokens"},
        ),
    ] = 3
    leader_capacity: Annotated[
        int,
        Meta(
            ge=16,
            le=2**22,
            title="Leaders kept",
            description="The least recently used leader leaves when there are more (LC).",
            extra={"unit": "leaders"},
        ),
    ] = 2**20
    follower_capacity: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            title="Followers kept",
            description="Of each leader; the least recently seen one leaves when there are more (FC).",
            extra={"unit": "followers"},
        ),
    ] = 128
    tree_tokens: Annotated[
        int,
        Meta(
            ge=2,
            le=256,
            title="Tree size",
            description="The most tokens checked in one step, the last known one included (TDL).",
            extra={"unit": "tokens"},
        ),
    ] = 96
    reserved_tokens: Annotated[
        int,
        Meta(
            ge=0,
            le=255,
            title="Kept for depth",
            description="Tokens of the paper's tree kept for its second and deeper levels (CRT).",
            extra={"unit": "tokens"},
        ),
    ] = 16


class DraftModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A second, smaller model of the same tokenizer family guesses a chain (the ngram-mod article's
    comparison)."""

    model: Annotated[
        str,
        Meta(
            max_length=4096,
            title="Model",
            description="A model folder or hub name with the same tokenizer.",
            extra={"lines": 1, "names": "model", "empty": "None chosen"},
        ),
    ] = ""
    k: Annotated[
        int,
        Meta(
            ge=1,
            le=32,
            title="Draft length",
            description="How many tokens are guessed at once.",
            extra={"unit": "tokens"},
        ),
    ] = 6
    stop_below: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            title="Stop below",
            description="A guess the draft model finds less likely than this ends the draft.",
            extra={"step": 0.05},
        ),
    ] = 0.4


def check_slots(slots: int) -> None:
    """Raises `SettingError` unless `slots` is a power of two from 2^12 to 2^22."""
    if not 2**12 <= slots <= 2**22 or slots & (slots - 1):
        raise SettingError(
            f"A table of {slots:,} slots is not possible.",
            "Use a power of two from 4,096 to 4,194,304 for ngram_mod.slots.",
        )


def check_cacheback(settings: Cacheback) -> None:
    """Raises `SettingError` if the tokens kept for depth leave no room for a first level.

    The tree's own root takes one token, a first level needs at least one more.
    """
    if settings.reserved_tokens > settings.tree_tokens - 2:
        raise SettingError(
            f"Keeping {settings.reserved_tokens} tokens for depth leaves no room in a tree"
            f" of {settings.tree_tokens}.",
            f"Set cacheback.reserved_tokens to at most {settings.tree_tokens - 2}, or enlarge"
            " cacheback.tree_tokens.",
        )


class DrafterGroups(Struct, frozen=True, forbid_unknown_fields=True):
    """Which one drafts, and each one's parameters in a group named like it (`ngram_simple`)."""

    drafting: Drafting = field(default_factory=Drafting)
    auto: Auto = field(default_factory=Auto)
    ngram_simple: NgramSimple = field(default_factory=NgramSimple)
    ngram_mod: NgramMod = field(default_factory=NgramMod)
    frequency: Frequency = field(default_factory=Frequency)
    cacheback: Cacheback = field(default_factory=Cacheback)
    draft_model: DraftModel = field(default_factory=DraftModel)
