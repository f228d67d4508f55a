"""Settings of the app: appearance, composing, permissions, memory, updates, server.

They apply to all chats and are not part of requests. `Allowed` limits the settings of requests.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from core.settings.fields import choice, number, switch
from core.settings.server import Server

# Parts of the window's bench, for its command and for the window.
BENCH_PARTS = ("start", "ready", "scenes", "cost")
ZOOM_STEPS_PCT = (70, 80, 90, 100, 110, 125, 150, 175, 200)


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """Appearance."""

    scheme: Annotated[
        Literal["system", "light", "dark"],
        choice(
            "Colour scheme",
            "Light, dark, or the system's setting.",
            {"system": "Same as system", "light": "Light", "dark": "Dark"},
        ),
    ] = "system"
    zoom_pct: Annotated[
        int,
        number(
            ZOOM_STEPS_PCT[0],
            ZOOM_STEPS_PCT[-1],
            "Text size",
            "Text size of answers, panels, menus and windows. 100 is the standard size.",
            unit="%",
            step=10,
        ),
    ] = 100
    tint: Annotated[
        Literal["always", "hover", "never"],
        choice(
            "Token tint",
            "When answers show the origin of each token. The legend and the strip remain visible.",
            {"always": "Always", "hover": "On hover", "never": "Never"},
        ),
    ] = "hover"
    motion: Annotated[
        Literal["system", "reduced"],
        choice(
            "Motion",
            "Reduced motion stops animations that start on their own.",
            {"system": "Same as system", "reduced": "Reduced"},
        ),
    ] = "system"


class Writing(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages and answers."""

    send_keys: Annotated[
        Literal["return", "command_return"],
        choice(
            "Send with",
            "The key that sends a message. The other one inserts a line break.",
            {"return": "Return", "command_return": "⌘ or Ctrl with Return"},
            {
                "return": "Shift with Return inserts a line break.",
                "command_return": "Return alone inserts a line break.",
            },
        ),
    ] = "return"
    stop_repeating: Annotated[
        bool,
        switch(
            "Stop answers that loop",
            "Stops an answer that repeats the same words endlessly, with a note. It can be continued.",
        ),
    ] = True
    titles: Annotated[
        bool,
        switch(
            "Generated titles",
            "While idle, the model gives new chats a short title. Only models of a billion parameters or"
            " more: titles of smaller ones, like the starter’s, are worse than the question’s first words."
            " Titles that you set are kept.",
            on="By models of a billion parameters or more.",
        ),
    ] = True


class Allowed(Struct, frozen=True, forbid_unknown_fields=True):
    """Permissions of chats. Off here is off in every chat."""

    learn: Annotated[
        bool,
        switch(
            "Learn from chats",
            "Tables may remember short runs of words from chats to draft later. Off: no chat leaves a trace"
            " in them.",
            on="Each chat can still opt out.",
            off="From no chat, whatever its settings.",
        ),
    ] = True
    save: Annotated[
        bool,
        switch(
            "Keep chat caches",
            "What the model has read of a chat may be saved on disk, so that the chat answers at once when it"
            " is opened again.",
            on="Each chat can still opt out.",
            off="Of no chat, whatever its settings.",
        ),
    ] = True
    read_on: Annotated[
        bool,
        switch(
            "Read the rest while idle",
            "Text skipped by sparse prefill may be read while idle, in chats with that setting. It uses"
            " power. Rehearsal has a separate switch, in Tables.",
            on="In chats with that setting.",
            off="In no chat, whatever its settings.",
        ),
    ] = True


class Memory(Struct, frozen=True, forbid_unknown_fields=True):
    """Use of memory."""

    unload_minutes: Annotated[
        int,
        number(
            0,
            1440,
            "Unload when idle",
            "After this time without questions and requests the model leaves memory. The next one loads it"
            " again. What it has read of saved chats is saved before. 0: never.",
            unit="min",
        ),
    ] = 0


class Updates(Struct, frozen=True, forbid_unknown_fields=True):
    """Network access besides downloads."""

    check: Annotated[
        bool,
        switch(
            "Check for updates",
            "Once a day, when Draftlight starts, one page of the project is requested for the number of the"
            " newest version. Nothing about you is sent. Off: no requests.",
        ),
    ] = False


class WindowSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of the app; each field is a group."""

    look: Look = field(default_factory=Look)
    writing: Writing = field(default_factory=Writing)
    allowed: Allowed = field(default_factory=Allowed)
    memory: Memory = field(default_factory=Memory)
    updates: Updates = field(default_factory=Updates)
    server: Server = field(default_factory=Server)


def next_zoom(zoom_pct: int, steps: int) -> int:
    """The text size `steps` larger, or smaller if negative, within `ZOOM_STEPS_PCT`."""
    larger = [step for step in ZOOM_STEPS_PCT if step > zoom_pct]
    smaller = [step for step in reversed(ZOOM_STEPS_PCT) if step < zoom_pct]
    found = larger if steps > 0 else smaller
    if not steps or not found:
        return zoom_pct
    return found[min(abs(steps), len(found)) - 1]


# The request setting that each permission limits.
_PERMITS = {"learn": "tables.learn", "save": "prefill.save", "read_on": "prefill.finish_reading"}


def forbidden(allowed: Allowed) -> tuple[str, ...]:
    """Keys of the request settings that `allowed` turns off."""
    return tuple(key for name, key in _PERMITS.items() if not getattr(allowed, name))
