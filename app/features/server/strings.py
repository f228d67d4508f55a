"""Texts of the local server's window."""

from __future__ import annotations

import re

TITLE = "Local Server"
LIST = "Requests"
ADDRESS = "Address"
MODEL_NAME = "Model name"
COPY_KEY = "Copy Key"
NEW_KEY = "New Key"
KEY_NOTE = "The key is kept in a file that only you can read."
SERVING = "Serving."
CLEAR = "Clear"
CLEAR_HELP = "Remove finished requests from the list."
CONNECT = "Connect an app"

APP = "App"
CONFIGURATION = "Configuration"
COPY = "Copy"
OTHER_NAMES_REFUSED = "“Strict” is on: requests with any other model name (claude-…, gpt-…) are refused."

CLIENT = "Client"
STATE = "State"
TOKENS = "Tokens"
SPEED = "tok/s"
ACCEPTED = "Accepted"
CACHED = "Cached"
FIRST_TOKEN = "TTFT"
CAME = "Received"

STATES = {
    "waiting": "Waiting",
    "reading": "Reading",
    "writing": "Writing",
    "finished": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
}
NEXT = "Next"
CANCELLED_NOTE = "Cancelled: the client disconnected or cancelled the request."
NOTHING_ON = "No request yet"
NOTHING_OFF = "The server is off"
EMBEDDED = "This request is for embeddings of its texts. They are not kept."
NOT_KEPT = "The answer is no longer in memory: newer requests replaced it."

# Headings in the texts of a request.
ROLES = {"system": "System", "assistant": "Beginning of the answer"}
THOUGHT = "Thought"
TOOLS = "Tools"


def result_of(tool: str) -> str:
    return f"Result of {tool}" if tool else "Result"


def call_of(tool: str) -> str:
    return f"Call of {tool}"


def image(name: str, width: int, height: int, left_out: str) -> str:
    size = f"{width:,} × {height:,} pixels{f', without {left_out}' if left_out else ''}"
    return f"Image “{name}”, {size}. The server erases images when their request has ended."


def model_named(name: str) -> str:
    return f"Model: {name}"


def paste_into(place: str) -> str:
    return f"Paste into {place}:"


def other_names_answered(model: str) -> str:
    return (
        f"Requests with any other model name (claude-…, gpt-…) are answered by {model} too."
        " “Strict” refuses them."
    )


def refused(problem: str) -> str:
    return f"The server refused this request: {problem}"


def waiting(position: int) -> str:
    return f"Waiting, {position} before" if position else NEXT


def read_of(cached: int, prompt: int) -> str:
    return f"{cached:,} of {prompt:,}"


def in_line(waiting_now: int) -> str:
    return "1 request is waiting." if waiting_now == 1 else f"{waiting_now:,} requests are waiting."


def seconds(value: str) -> str:
    return f"{value} s"


CHANGED = "Another model is being loaded in Draftlight."
CHANGED_HINT = "Ask again in a moment."
BROKEN = "The local server stopped unexpectedly."
BROKEN_HINT = "Turn it off and on again in the window “Local Server”."
COPIED_KEY = "The key was copied."


def no_address(given: str) -> str:
    return f"“{given}” is not a valid address to listen on."


NO_ADDRESS_HINT = "Use 127.0.0.1, localhost, or a numeric address of this machine."


def bad_name(given: str) -> str:
    return f"“{given}” is not a valid host name."


BAD_NAME_HINT = "A name is like mac.local, without http:// and without a port."


def bad_origin(given: str) -> str:
    return f"“{given}” is not the origin of a web page."


BAD_ORIGIN_HINT = "An origin is like http://localhost:3000, without a path."


OFF = "The server is off."
STARTING = "Starting…"
NEW_KEY_MADE = "A new key was made. Clients that send the old one are refused."


def serving(address: str) -> str:
    return f"Serving at {address}."


_VERSION = re.compile(r"/v?\d[\w.+-]*$")
_BROWSER = "Mozilla"


def short_name(agent: str) -> str:
    """Returns the program of a user agent without its version: `OpenAI/Python` for `OpenAI/Python 2.8.1`."""
    first = agent.split(maxsplit=1)[0] if agent.strip() else ""
    name = _VERSION.sub("", first)
    if name == _BROWSER:
        return "Browser"
    return agent if agent == "Unknown client" else name
