"""Settings of the app as a whole: how it looks, which key sends, what it may do by itself.

They hold for every chat and travel with no request. What a request carries is `Settings`; where
the two meet (`Allowed`), what is not allowed here is not asked for there.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from core.settings.server import Server

ZOOM_STEPS_PCT = (70, 80, 90, 100, 110, 125, 150, 175, 200)


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """How it looks."""

    scheme: Annotated[
        Literal["system", "light", "dark"],
        Meta(
            title="Colour scheme",
            description="Light or dark, or as the system has it.",
            extra={"labels": {"system": "Same as system", "light": "Light", "dark": "Dark"}},
        ),
    ] = "system"
    zoom_pct: Annotated[
        int,
        Meta(
            ge=ZOOM_STEPS_PCT[0],
            le=ZOOM_STEPS_PCT[-1],
            title="Text size",
            description="Of answers, panels, menus and windows. 100 is the size they are designed for.",
            extra={"unit": "%", "step": 10},
        ),
    ] = 100
    tint: Annotated[
        Literal["always", "hover", "never"],
        Meta(
            title="Token tint",
            description="When answers show where each token came from. Never hides the legend and strip.",
            extra={"labels": {"always": "Always", "hover": "On hover", "never": "Never"}},
        ),
    ] = "hover"
    motion: Annotated[
        Literal["system", "reduced"],
        Meta(
            title="Motion",
            description="Reduced motion stops what moves or blinks without being touched.",
            extra={"labels": {"system": "Same as system", "reduced": "Reduced"}},
        ),
    ] = "system"


class Writing(Struct, frozen=True, forbid_unknown_fields=True):
    """How a message is written."""

    send_keys: Annotated[
        Literal["return", "command_return"],
        Meta(
            title="Send with",
            description="The key that sends a message. The other one breaks the line.",
            extra={
                "labels": {"return": "Return", "command_return": "⌘ or Ctrl with Return"},
                "notes": {
                    "return": "Shift with Return breaks the line.",
                    "command_return": "Return alone breaks the line.",
                },
            },
        ),
    ] = "return"

    stop_repeating: Annotated[
        bool,
        Meta(
            title="Stop answers that loop",
            description="An answer that says the same words over and over, without end, is stopped with a"
            " note. It can be continued.",
        ),
    ] = True

    titles: Annotated[
        bool,
        Meta(
            title="Generated titles",
            description="While nothing is asked or written, the model gives a new chat a short title. Only"
            " models of a billion parameters or more: the titles of smaller ones, like the starter’s, are"
            " worse than the question’s first words. A title of yours stays.",
            extra={"notes": {"True": "By models of a billion parameters or more."}},
        ),
    ] = True


class Allowed(Struct, frozen=True, forbid_unknown_fields=True):
    """What chats may do. Off here is off in every chat, whatever the chat says."""

    learn: Annotated[
        bool,
        Meta(
            title="Learn from chats",
            description="Tables may remember short runs of words from chats, to guess ahead later."
            " Off: no chat leaves a trace in them.",
            extra={
                "notes": {
                    "True": "Each chat can still say no.",
                    "False": "From no chat, whatever it says.",
                }
            },
        ),
    ] = True
    read_on: Annotated[
        bool,
        Meta(
            title="Read the rest while idle",
            description="What sparse prefill left out may be read quietly while nothing is asked, in"
            " chats that want that. It uses power. Rehearsing has a switch of its own, in Tables.",
            extra={
                "notes": {
                    "True": "In chats that want it.",
                    "False": "In no chat, whatever it says.",
                }
            },
        ),
    ] = True


class Updates(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether anything outside is ever asked."""

    check: Annotated[
        bool,
        Meta(
            title="Check for updates",
            description="Once a day, when Draftlight starts, one page of the project is asked which version"
            " is the newest. Nothing about you is sent. Off: nothing is ever asked.",
        ),
    ] = False


class WindowSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """All of them. A field here is a group."""

    look: Look = field(default_factory=Look)
    writing: Writing = field(default_factory=Writing)
    allowed: Allowed = field(default_factory=Allowed)
    updates: Updates = field(default_factory=Updates)
    server: Server = field(default_factory=Server)


def next_zoom(zoom_pct: int, steps: int) -> int:
    """The size `steps` larger (or smaller, if negative), within those there are."""
    larger = [step for step in ZOOM_STEPS_PCT if step > zoom_pct]
    smaller = [step for step in reversed(ZOOM_STEPS_PCT) if step < zoom_pct]
    found = larger if steps > 0 else smaller
    if not steps or not found:
        return zoom_pct
    return found[min(abs(steps), len(found)) - 1]


# Which setting of a chat each permission is about.
_PERMITS = {"learn": "tables.learn", "read_on": "prefill.finish_reading"}


def forbidden(allowed: Allowed) -> tuple[str, ...]:
    """The keys of the chats' settings that `allowed` keeps off."""
    return tuple(key for name, key in _PERMITS.items() if not getattr(allowed, name))
