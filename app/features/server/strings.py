"""Texts of the local server's window."""

from __future__ import annotations

TITLE = "Local Server"
LIST = "Requests"
ADDRESS = "Address"
MODEL_NAME = "Model name"
SETTINGS = "Settings"
REQUESTS = "Requests"
COPY_KEY = "Copy Key"
NEW_KEY = "New Key"
KEY_NOTE = "The key is kept in a file that only you can read."
DELETE = "Delete"
DELETE_HELP = "Delete the selected request and its answer, also from the disk."
DELETE_ALL = "Delete All"
DELETE_ALL_HELP = "Delete all finished requests and their answers, also from the disk."
DELETE_ALL_QUESTION = "Delete all requests?"
CANCEL = "Cancel"
KEEPING = "Requests are kept for 30 days."
SERVING = "Serving."

CONNECT = "Connect an App…"
CONNECT_HELP = "Copy a ready configuration for an app that is to use this server."
CONNECT_TITLE = "Connect an App"
APP = "App"
CONFIGURATION = "Configuration"
COPY = "Copy"
DONE = "Done"
OTHER_NAMES_REFUSED = (
    "“Strict” is on in Settings: requests with any other model name (claude-…, gpt-…) are refused."
)

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
NOTHING_ON = "No request yet. “Connect an App…” has ready configurations for editors and agents."
NOTHING_OFF = "The server is off. Click Settings to turn it on. Requests appear here."
EMBEDDED = "This request is for vectors of its texts. They are not kept."
NOT_KEPT = "The request and its answer are no longer stored: newer requests replaced them."

REQUEST = "Request"
EFFECTIVE = "Effective Settings"
ASKED_FOR = "Requested Settings"
MODEL = "Model"
ENDPOINT = "Endpoint"
STREAMS = "Streams"
WAITED = "Waited"
PROMPT = "Prompt"
MESSAGES = "Messages"
TOTAL = "Took"
TOOLS = "Tools"
GRAMMAR = "Format"
PREDICTION = "Prediction"
STOPS = "Stop sequences"
DRAFTER = "Drafter"
READING = "Reading"
EXACTNESS = "Exactness"
GATE = "Drafting"
YES, NO = "Yes", "No"
FORMATS = {
    "json_object": "JSON",
    "json_schema": "JSON by a schema",
    "tool_calls": "Text, and calls by their schemas",
}


def model_named(name: str) -> str:
    return f"Model: {name}"


def paste_into(place: str) -> str:
    return f"Paste into {place}:"


def other_names_answered(model: str) -> str:
    return (
        f"Requests with any other model name (claude-…, gpt-…) are answered by {model} too."
        " “Strict” in Settings refuses them."
    )


def refused(problem: str) -> str:
    return f"The server refused this request: {problem}"


def waiting(position: int) -> str:
    return f"Waiting, {position} before" if position else NEXT


def tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


def characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count:,} characters"


def read_of(cached: int, prompt: int) -> str:
    return f"{cached:,} of {prompt:,}"


def delete_all_detail(kept: int) -> str:
    what = "1 request is" if kept == 1 else f"{kept:,} requests are"
    return f"{what} erased from this disk, answers included. Nothing brings them back."


def in_line(waiting_now: int) -> str:
    return "1 request waits." if waiting_now == 1 else f"{waiting_now:,} requests wait."


def seconds(value: str) -> str:
    return f"{value} s"


CHANGED = "Another model is being loaded in Draftlight."
CHANGED_HINT = "Ask again in a moment."
BROKEN = "The local server stopped unexpectedly."
BROKEN_HINT = "Turn it off and on again in the window “Local Server”, under Settings."
COPIED_KEY = "The key was copied."


def no_address(given: str) -> str:
    return f"“{given}” is not a valid address to listen on."


NO_ADDRESS_HINT = "Give 127.0.0.1, localhost, or an address of this machine in figures."


def bad_name(given: str) -> str:
    return f"“{given}” is not a valid host name."


BAD_NAME_HINT = "A name is like mac.local, without http:// and without a port."


def bad_origin(given: str) -> str:
    return f"“{given}” is not the origin of a web page."


BAD_ORIGIN_HINT = "An origin is like http://localhost:3000, without a path."


OFF = "Nothing listens."
STARTING = "Starting…"
NEW_KEY_MADE = "There is a new key. Clients that send the old one are refused."


def serving(address: str) -> str:
    return f"Serving at {address}."
