"""Texts about the tools of the open chat."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.session.tools.calls import CallRecord
from app.session.tools.form import FormError, read_json, shown_value

# ---- the question
ALLOW_ONCE = "Allow Once"
ALLOW_CHAT = "This Tool in This Chat"
ALLOW_ALWAYS = "Always"
REFUSE = "Don’t Allow"
STOP = "Stop"
ALLOW_ONCE_SAYS = "Runs this call with these arguments, once."
ALLOW_CHAT_SAYS = (
    "Runs this call, and later calls of this tool in this chat without asking, if every address, path and"
    " command in them is in your own messages."
)
ALLOW_ALWAYS_SAYS = (
    "Runs this call, and later calls of this tool in all chats without asking, if every address, path and"
    " command in them is in your own messages. You can revoke this in the window “Tools”."
)
REFUSE_SAYS = "Does not run this call. The model is informed and continues."
STOP_SAYS = "Does not run this call, and ends the answer."
NO_ARGUMENTS = "The call has no arguments."
WHOLE = "Arguments"
REMOVE_ARGUMENT = "Remove “{name}”"
ADD_ARGUMENT = "Add Argument"
REQUIRED = "required"
NOT_AN_OBJECT = "The arguments must be a JSON object, like {…}."
READ_ONLY = "“{server}” says that this tool only reads data. Draftlight cannot check this."
NOT_READ_ONLY = "“{server}” does not say that this tool only reads data."
SAYS = "“{server}” says: {words}"
WAITS = "Waits for your permission"
YOURS = "no line: typed by you in this card"
LEGEND = "Origin of the words: {words}"
_DESCRIPTION_CHARACTERS = 280

# ---- a call in the answer
CALL_SAYS = "Tool call. Press to show or hide the call and its result."
IMAGES_OF_RESULT = "Images of the result"


def question(server: str, tool: str) -> str:
    return f"Allow “{server}” to run “{tool}”?"


def described(server: str, description: str) -> str:
    """A server's description of its tool, on one line; empty without one."""
    words = " ".join(description.split())
    if len(words) > _DESCRIPTION_CHARACTERS:
        words = words[:_DESCRIPTION_CHARACTERS].rstrip() + "…"
    return SAYS.format(server=server, words=words) if words else ""


def origin_words(origin: str, name: str) -> str:
    """The origin of words of an argument, for the legend, a tooltip and assistive technology."""
    match origin:
        case "question":
            return "your message"
        case "document":
            return f"“{name}”" if name else "a document"
        case "result":
            return f"result of “{name}”" if name else "the result of a tool"
        case _:
            return "the model itself"


def spoken_origin(text: str, origin: str) -> str:
    return f"“{text}”: {origin}"


# Past tense of verbs with which tool names begin.
_PAST = {
    "add": "Added",
    "browse": "Browsed",
    "calculate": "Calculated",
    "check": "Checked",
    "convert": "Converted",
    "copy": "Copied",
    "create": "Created",
    "delete": "Deleted",
    "describe": "Described",
    "download": "Downloaded",
    "edit": "Edited",
    "execute": "Executed",
    "fetch": "Fetched",
    "get": "Got",
    "list": "Listed",
    "lookup": "Looked up",
    "move": "Moved",
    "open": "Opened",
    "query": "Queried",
    "read": "Read",
    "remove": "Removed",
    "run": "Ran",
    "search": "Searched",
    "send": "Sent",
    "set": "Set",
    "update": "Updated",
    "write": "Wrote",
}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LINE_CHARACTERS = 60


def done_words(tool: str) -> str:
    """“Got current time” for `get_current_time`, “Used magic” for `magic`."""
    verb, *rest = _WORDS.findall(tool) or [tool]
    past = _PAST.get(verb.lower())
    if past is None:
        return f"Used {tool}"
    return " ".join((past, *(word if word.isupper() else word.lower() for word in rest)))


def main_argument(arguments: str) -> str:
    """The first text or number among the arguments, shortened for a line; empty without one."""
    try:
        values = read_json(arguments)
    except FormError:
        return ""
    for value in values.values() if isinstance(values, dict) else ():
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            words = " ".join(shown_value(value)[0].split())
            return words if len(words) <= _LINE_CHARACTERS else words[:_LINE_CHARACTERS].rstrip() + "…"
    return ""


def call_line(call: CallRecord) -> str:
    """The state of a call in one line: “Got forecast: Bern, 0.8 s”."""
    tool, about = call.tool or call.name, main_argument(call.arguments)
    subject = f"{tool}: {about}" if about else tool
    match call.state:
        case "waiting":
            return f"{subject} waits for your permission"
        case "running":
            return f"Running {subject}…"
        case "denied":
            return f"Not allowed: {subject}"
        case "failed":
            return f"Failed: {subject}{_took(call.seconds)}"
        case "unknown":
            return f"May have run: {subject}"
        case _:
            done = done_words(tool)
            return f"{done}: {about}{_took(call.seconds)}" if about else f"{done}{_took(call.seconds)}"


def call_tip(call: CallRecord) -> str:
    """The server and how the call was allowed."""
    how = {
        "once": "allowed once",
        "chat": "allowed in this chat",
        "always": "always allowed",
    }.get(call.allowed_by, "")
    return ", ".join(filter(None, (f"{call.tool or call.name} of {call.server}" if call.server else "", how)))


def _took(seconds: float) -> str:
    if not seconds:
        return ""
    return f", {seconds:.1f} s" if seconds < 99.95 else f", {seconds:.0f} s"


_RESULT_CHARACTERS = 20_000


def shown_result(call: CallRecord) -> str:
    """The text of a result for the answer; a long one is cut. Empty if there is nothing to show."""
    text, left = call.result[:_RESULT_CHARACTERS], len(call.result) - _RESULT_CHARACTERS
    notes = [f"… and {left:,} more characters, which were sent to the model"] if left > 0 else []
    if call.left_out:
        notes.append(f"Not shown: {', '.join(each.rstrip(',') for each in call.left_out)}")
    return "\n\n".join(filter(None, (text, *notes)))


def result_of(tool: str, server: str) -> str:
    """The title of a result."""
    return f"Result of {tool} ({server})" if server else f"Result of {tool}"


def call_figures(forced: int, copied: int, new: int) -> str:
    """“calls: 12 tokens forced, 40 copied, 9 new”."""
    total = forced + copied + new
    return f"calls: {total:,} tokens, {forced:,} forced, {copied:,} copied, {new:,} new"


CALL_FIGURES_SAYS = (
    "Forced tokens are the only ones that the syntax of the call allows. Copied tokens were drafted from"
    " earlier text and accepted. New tokens were generated by the model."
)

# ---- the choice of tools
TOOLS = "Tools"
MANAGE = "Manage Tools…"
ADD_SERVERS = "Add Servers…"
NO_SERVERS = "No tools yet. Add a server in the window “Tools”."
CHOICE = "Tools in this chat"
CHOICE_SAYS = "Tools that the model may call in this chat. Each call needs your permission before it runs."
ALL_OF = "All tools of {server}"
STARTING = "Starting…"
UNREAD_CALLS = (
    "Tools may not work with this model: Draftlight does not support its chat template’s format of calls."
)
HAS_NO_TOOLS = "This server has no tools."


def tools_button(count: int, tokens: int | None) -> str:
    """“Tools”, or “3 tools, 1,240 tokens”."""
    if not count:
        return TOOLS
    words = "1 tool" if count == 1 else f"{count:,} tools"
    return words if tokens is None else f"{words}, {tokens:,} tokens"


def chosen(count: int, tokens: int | None) -> str:
    """The popover's total."""
    words = f"{count:,} chosen" if count else "None chosen"
    return words if not count or tokens is None else f"{words}, {tokens:,} tokens"


def tool_tokens(tokens: int | None) -> str:
    return "" if tokens is None else f"{tokens:,}"


def legend(parts: Sequence[str]) -> str:
    return LEGEND.format(words=", ".join(parts)) if parts else ""
