"""Settings of the app: appearance, composing, permissions, memory, server.

They apply to all chats and are not part of requests. `Allowed` limits the settings of requests.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct, field

from core.settings.fields import about, choice, number, switch, text

# Parts of the window's bench, for its command and for the window.
BENCH_PARTS = ("start", "ready", "scenes", "cost")
ZOOM_STEPS_PCT = (70, 80, 90, 100, 110, 125, 150, 175, 200)


class Look(Struct, frozen=True, forbid_unknown_fields=True):
    """Appearance."""

    scheme: Annotated[
        Literal["system", "light", "dark"],
        choice({"system": "Same as system", "light": "Light", "dark": "Dark"}),
        about("Color scheme", "Light, dark, or the system’s setting."),
    ] = "system"
    zoom_pct: Annotated[
        int,
        number(ZOOM_STEPS_PCT[0], ZOOM_STEPS_PCT[-1], unit="%", step=10),
        about("Text size", "Text size of answers, panels, menus and windows. 100 is the standard size."),
    ] = 100
    token_colors: Annotated[
        Literal["drafts", "origins", "off"],
        choice(
            {
                "drafts": ("Drafts", "Drafted tokens while an answer is written, then on hover."),
                "origins": ("Origins", "Words from your documents, and figures that are not in them."),
                "off": "Off",
            }
        ),
        about(
            "Token colors", "Marks in answers: how tokens were drafted, or which words are from documents."
        ),
    ] = "drafts"
    motion: Annotated[
        Literal["system", "reduced"],
        choice({"system": "Same as system", "reduced": "Reduced"}),
        about("Motion", "Reduced motion stops animations that start on their own."),
    ] = "system"


class Writing(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages and answers."""

    send_keys: Annotated[
        Literal["return", "command_return"],
        choice(
            {
                "return": ("Return", "Shift with Return inserts a line break."),
                "command_return": ("⌘ or Ctrl with Return", "Return alone inserts a line break."),
            }
        ),
        about("Send with", "The key that sends a message. The other one inserts a line break."),
    ] = "return"
    stop_repeating: Annotated[
        bool,
        about(
            "Stop answers that loop",
            "Stops an answer that repeats itself three times in a row, and folds the repetitions. It can be"
            " continued. Code, tables, lists and verse may repeat themselves longer.",
        ),
    ] = True
    titles: Annotated[
        bool,
        switch(on="By models of a billion parameters or more."),
        about(
            "Generated titles",
            "While idle, the model gives new chats a short title. Only models of a billion parameters or"
            " more: titles of smaller ones, like the starter’s, are worse than the question’s first words."
            " Titles that you set are kept.",
        ),
    ] = True


class Allowed(Struct, frozen=True, forbid_unknown_fields=True):
    """Permissions of chats. Off here is off in every chat."""

    learn: Annotated[
        bool,
        switch(on="Each chat can still opt out.", off="Off in all chats, whatever their settings."),
        about(
            "Learn from chats",
            "Tables may remember short runs of words from chats to draft later. Off: no chat leaves a trace"
            " in them.",
        ),
    ] = True
    save: Annotated[
        bool,
        switch(on="Each chat can still opt out.", off="Off in all chats, whatever their settings."),
        about(
            "Keep chat caches",
            "The KV cache of a chat may be saved on disk, so that the chat answers at once when it is opened"
            " again.",
        ),
    ] = True


class Memory(Struct, frozen=True, forbid_unknown_fields=True):
    """Use of memory."""

    unload_minutes: Annotated[
        int,
        number(0, 1440, unit="min", zero="Never: the model stays in memory."),
        about(
            "Unload when idle",
            "Frees the model’s memory after this time without questions or requests. The next one loads it"
            " again. KV caches of chats are saved before, if they are kept. 0: never.",
        ),
    ] = 0


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """Serves OpenAI's and Anthropic's APIs to editors and scripts."""

    on: Annotated[
        bool,
        switch(off="Off: the server does not listen."),
        about(
            "Serve",
            "Editors and scripts can use the loaded model through OpenAI’s API while Draftlight is open."
            " Their requests and the chats share one queue.",
        ),
    ] = False
    port: Annotated[int, number(1024, 65535), about("Port", "Port of the server on this machine.")] = 8317
    address: Annotated[
        str,
        text(64, least=2, lines=1),
        about(
            "Address",
            "127.0.0.1 accepts connections from this machine only. Any other address, or 0.0.0.0, accepts"
            " other machines, so an API key is required.",
        ),
    ] = "127.0.0.1"
    hosts: Annotated[
        str,
        text(2000, lines=3),
        about(
            "Allowed names",
            "Host names that clients may use besides the address, such as mac.local; one per line.",
        ),
    ] = ""
    ask_key: Annotated[
        bool,
        about(
            "Ask for a key", "Clients must send the API key, as “Authorization: Bearer …” or “x-api-key: …”."
        ),
    ] = False
    origins: Annotated[
        str,
        text(2000, lines=3),
        about(
            "Allowed origins",
            "Web pages that may send requests, such as http://localhost:3000; one per line. Empty: none.",
        ),
    ] = ""
    waiting: Annotated[
        int,
        number(0, 100, unit="requests"),
        about(
            "Waiting requests", "Maximum number of queued requests. Others are refused with the time to wait."
        ),
    ] = 64
    max_body_mb: Annotated[
        int,
        number(1, 48, unit="MB"),
        about("Largest request", "Larger requests are refused before they are read."),
    ] = 16
    longest_answer: Annotated[
        int,
        number(64, 131072, unit="tokens"),
        about("Longest answer", "Maximum length of an answer if its request sets no limit."),
    ] = 32768
    load_models: Annotated[
        bool,
        switch(off="Off: the loaded model answers, whatever model a request names."),
        about(
            "Load models",
            "A request that names another installed model loads it when its turn comes. The chats are"
            " answered by that model from then on.",
        ),
    ] = False
    learn: Annotated[
        bool,
        about(
            "Learn from requests",
            "Tables remember short runs of words from clients’ requests, as they do from chats.",
        ),
    ] = False
    strict: Annotated[
        bool,
        about(
            "Strict",
            "Refuses requests with unsupported fields, tools, images or model names. Otherwise these are"
            " ignored and listed in the answer’s draftlight.changes.",
        ),
    ] = False


class WindowSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of the app; each field is a group."""

    look: Look = field(default_factory=Look)
    writing: Writing = field(default_factory=Writing)
    allowed: Allowed = field(default_factory=Allowed)
    memory: Memory = field(default_factory=Memory)
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
_PERMITS = {"learn": "tables.learn", "save": "prefill.save"}


def forbidden(allowed: Allowed) -> tuple[str, ...]:
    """Keys of the request settings that `allowed` turns off."""
    return tuple(key for name, key in _PERMITS.items() if not getattr(allowed, name))
