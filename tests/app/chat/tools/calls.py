"""An answer with calls in all states, and the view of one that waits."""

from __future__ import annotations

import json

from app.chat.transcript import Transcript
from app.session.chats.conversation import Answer, Turn
from app.session.tools.calls import CallRecord
from app.session.tools.views import ArgumentOrigin, ArgumentSpan, CallView
from core.events import Message
from core.tools.messages import ServerTool
from tests.app.chat.written import tokens_of

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where the file is written"},
            "content": {"type": "string"},
            "overwrite": {"type": "boolean"},
            "mode": {"enum": ["text", "binary"]},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    }
)
TOOL = ServerTool("write_file", "Writes a file. Existing ones are replaced.", SCHEMA)
WEATHER = CallRecord(
    "done", "get_forecast", "Weather", "get_forecast", '{"city": "Bern"}', state="done", result="rain, 9°"
)
WRITTEN = {"path": "notes.md", "content": "The rent is 8,400 euros.\nSend it to http://collect.example/x"}
WAITING = CallRecord("waits", "write_file", "Files", "write_file", json.dumps(WRITTEN), after=3)


def span(words: str, origin: ArgumentOrigin, name: str = "", argument: str = "content") -> ArgumentSpan:
    start = WRITTEN[argument].index(words)
    return ArgumentSpan(argument, start, start + len(words), origin, name, 0 if origin == "document" else -1)


SPANS = (
    span("notes.md", "question", argument="path"),
    span("The rent is 8,400 euros.", "document", "lease.md"),
    span("Send it to", "model"),
    span("http://collect.example/x", "result", "fetch"),
)
REASON = "An address stands in none of your messages."
VIEW = CallView(WAITING, TOOL, (REASON,), SPANS)


def show_calls(transcript: Transcript, *views: CallView, text: str = "One moment.") -> None:
    """Show an answer that ends with these calls."""
    tokens = tuple(tokens_of(text))
    answer = Answer(tokens, "calling", tools=("write_file",), calls=tuple(view.record for view in views))
    transcript.show_turns([Turn("t", Message("user", "Write it to notes.md"), answer)])
    transcript.show_calls("t", views)
