"""UI strings about the worker, and texts shared by several parts of the window."""

from __future__ import annotations

import sys
from collections.abc import Sequence

APP_NAME = "Draftlight"


def tokens(count: int) -> str:
    return f"{count:,} token" if count == 1 else f"{count:,} tokens"


NO_EYES = "it is a text-only model"


def cannot_see(model: str, images: int, why: str) -> str:
    what = "the image" if images == 1 else f"the {images:,} images"
    return f"{model} cannot see {what}: {why.rstrip('.')}."


def cannot_read_scan(model: str, name: str, why: str) -> str:
    return f"{model} cannot read “{name}”, whose pages are pictures: {why.rstrip('.')}."


WORKER_STOPPED = "Engine stopped"
MACHINE = "this Mac" if sys.platform == "darwin" else "this computer"
MODEL_NAMES = {"starter": "the starter model"}


def header_subtitle(model: str, drafter: str, drafts: bool) -> str:
    """Shown below the chat's title."""
    return f"{model}, drafting with {drafter}" if drafts else f"{model}, drafting is off"


def header_stopped(model: str) -> str:
    return f"{model}, engine stopped" if model else WORKER_STOPPED


def header_loading(model: str) -> str:
    return f"Loading {model_name(model)}"


def model_name(model: str) -> str:
    """Returns the name of a model that is not loaded, from its reference."""
    return MODEL_NAMES.get(model) or model.rstrip("/").rpartition("/")[2] or model


BLOCKED_DEAD = "Sending is paused until the engine is back. Your draft is kept."
BLOCKED_STARTING = "The engine is starting. Messages are sent when it is ready."
BLOCKED_LOADING = "The model is loading. Messages are sent when it is ready."
BLOCKED_NO_MODEL = "Sending is paused because no model is loaded. Your draft is kept."
BLOCKED_BY_RACE = "A race is being recorded. Messages are sent when it ends."


def blocked_by_other_chat(title: str) -> str:
    return f"“{title}” is being answered. Messages in this chat are sent after that."


def answer_loads(model: str) -> str:
    return f"Loading {model}…"


def answering_client(client: str) -> str:
    """`client`: the name that a program states, or empty."""
    return f"Answering {client}" if client else "Answering a request"


def waiting_for(requests: int) -> str:
    """The number of the local server's requests that are answered before the question."""
    return (
        "Waiting for 1 request of the local server"
        if requests == 1
        else f"Waiting for {requests:,} requests of the local server"
    )


def next_after(client: str) -> str:
    """Shown while no question is pending in the window."""
    return f"{client or 'A request'} is being answered by the local server. Your next question follows."


NO_LOG = "The engine wrote nothing to its log."

DIED_TITLE = "The engine stopped unexpectedly."
DIED_LOADING_TITLE = "The engine stopped while the model was loading."
NOT_STARTED_TITLE = "The engine could not be started."
STUCK_TITLE = "The engine does not respond."
MODEL_FAILED_TITLE = "The model could not be loaded."
LOAD_DEATHS = "The engine stopped twice while it loaded this model, so no model was loaded."
OTHER_MODEL = "Choose another model, or try again."
TEXT_IS_BACK = "Your text is in the message field again."
UNREADABLE_TITLE = "The engine sent an invalid message."


def tables_refused(family: str) -> str:
    return f"Some of the learned data for {family} cannot be used."


def model_stays(name: str) -> str:
    return f"{name} stays loaded."


def ended_by_signal(name: str) -> str:
    """SIGKILL from outside usually means that memory was full."""
    if name == "SIGKILL":
        return "It was ended by signal SIGKILL, which the system also sends when memory runs out."
    return f"It was ended by signal {name}."


GPU_ENDED = {
    "memory": "Its memory was exhausted.",
    "interrupted": "macOS stopped the work of the GPU because it delayed the display.",
    "gpu": "The GPU failed.",
}


def ended_with_status(returncode: int) -> str:
    return f"It exited with status {returncode}."


def chat_kept(tokens_written: int | None) -> str:
    if tokens_written is None:
        return "The chats are kept."
    if tokens_written == 0:
        return "The chat is kept; the answer had not begun."
    return f"The chat is kept, with the {tokens(tokens_written)} written so far."


def silent_for(seconds: float) -> str:
    return f"It has not responded for {seconds:.0f} s. You can wait, or restart it; the chat is kept."


STARTING = "Starting"
LOADING = "Loading"
NO_MODEL = "No model loaded"
READY = "Ready"
RELEASED = "Unloaded while idle"
LOADS_AGAIN = "The model was unloaded while idle. The next question loads it again."
READING = "Reading"
WRITING = "Writing"
STOPPING = "Stopping"
CLOSING = "Closing"
STUCK = "Not responding"
ANSWER_READS = "Reading the question…"
ANSWER_STOPS = "Stopping…"
RESTART_TO_GO_ON = "Restart it to continue"

# ---- origins
PASTED = "Your message"
OF_TOOL = "Result of {name}"
NOT_IN_DOCUMENTS = "Not in your documents"


def on_pages(name: str, first: int, last: int) -> str:
    """“rules.pdf, page 7”."""
    return f"{name}, page {first:,}" if first == last else f"{name}, pages {first:,} to {last:,}"


WHERE_FROM = "Where the words come from"


# ---- tools
_MOST_QUOTED = 80
RESULT_LEFT_OUT = "[result left out: the context is full]"
LEFT_OUT = "[{what} left out]"
REFUSED = "The user did not allow this call. It was not run."
STOPPED = "The user stopped the answer before this call was run."
COPIED = "the chat was copied before it ended."
TOO_MANY = "This call was not run: an answer makes at most {most} calls."
MAY_HAVE_RUN = "It is not known whether this call was run: {why}"
STOPPED_CALL = "the user stopped the answer while it was running."
CLOSED_MEANWHILE = "Draftlight was closed while it was running."
FAILED_CALL = "The call failed: {why}"
TOOL_CHANGED = "The tool or its description has changed since you allowed it."
SAME_CALL = "The same call was made before in this answer."
ARGUMENTS_HINT = "Correct the arguments, or don’t allow the call."
NOT_TEXT = "The arguments contain an invalid character (half an emoji), which cannot be sent."
NOT_AN_OBJECT = "The arguments are not a JSON object: { … }."


CALL_STATES = {
    "waiting": "not run yet",
    "running": "not run yet",
    "denied": "not run",
    "failed": "failed",
    "unknown": "not known whether it ran",
}
CALLED = "Called {tool} of {server}, {how}"
CALL_HINT = "The card shows its current state."


def call_not(needed: str, state: str) -> str:
    """Why a call cannot be allowed, refused or ended."""
    return f"The call is not {needed}; it is {state}."


def stopped_after(most: int) -> str:
    """Note of an answer with too many calls."""
    return f"Stopped after {most} tool calls."


def not_yours(texts: Sequence[str]) -> str:
    """Reason for asking: texts that the person did not write."""
    return f"Not in your own messages: {', '.join(f'“{shortened(text)}”' for text in texts)}."


def shortened(text: str) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text.split())
    return words if len(words) <= _MOST_QUOTED else f"{words[:_MOST_QUOTED]}…"


def arguments_long(characters: int, most: int) -> str:
    return f"The arguments have {characters:,} characters; at most {most:,} are sent."


def not_json(reason: str, line: int) -> str:
    return f"The arguments are not valid JSON: {reason}{f' in line {line}' if line else ''}."


def arguments_deep(most: int) -> str:
    return f"The arguments are nested more than {most} levels deep."


def named_twice(name: str) -> str:
    return f"“{shortened(name)}” occurs twice"


def not_a_number(constant: str) -> str:
    return f"{constant} is not a valid JSON number"
