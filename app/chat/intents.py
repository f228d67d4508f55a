"""Intents: what a person asks for in the widgets of the open chat, as frozen structs; and the buttons under
an answer, which ask for some of it.

Each view emits all of them through its one `intent` signal; `AskController.on_intent` handles them. A turn is
named by its id, an attachment by its index in the turn's message.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from app.chat import strings
from app.chat.entry import AnswerEntry
from app.chat.sources import Source
from app.session.chats.answers import Edit
from app.session.origins import ChatSource
from app.session.tools.calls import ChosenTool, Scope
from core.events import Image, Message, Passage
from core.origins import Place


class Intent(Struct, frozen=True):
    """Base of the intents."""


class SendMessage(Intent, frozen=True):
    """Send `message`; it stays in the composer until the request has started."""

    message: Message


class QueueMessage(Intent, frozen=True):
    """Send `message` when it can be sent: the current answer has ended, or the model is loaded."""

    message: Message


class SendQueued(Intent, frozen=True):
    """Send the first queued message now, and then the others."""


class EditQueued(Intent, frozen=True):
    """Move the queued message number `index`, which is `message`, back into the composer."""

    index: int
    message: Message


class RemoveQueued(Intent, frozen=True):
    """Remove the queued message number `index`, which is `message`."""

    index: int
    message: Message


class StopAnswer(Intent, frozen=True):
    """Stop generating the current answer."""


class AllowCall(Intent, frozen=True):
    """Run a call that waits in the answer of `turn_id`, with the `arguments` that its card shows: JSON.

    `scope`: this call only, this tool in this chat, or always.
    """

    turn_id: str
    call_id: str
    scope: Scope
    arguments: str


class RefuseCall(Intent, frozen=True):
    """Don't run a waiting call in the answer of `turn_id`; its result informs the model."""

    turn_id: str
    call_id: str


class ChooseTools(Intent, frozen=True):
    """Let the model call these tools in the open chat, and no others."""

    tools: tuple[ChosenTool, ...]


class Regenerate(Intent, frozen=True):
    """Answer the question of `turn_id` again."""

    turn_id: str


class DeleteMessage(Intent, frozen=True):
    """Delete the question of `turn_id` with its answer."""

    turn_id: str


class ReadEverything(Intent, frozen=True):
    """Answer the question of `turn_id` again from a dense prefill."""

    turn_id: str


class ContinueAnswer(Intent, frozen=True):
    """Continue the last answer, which is unfinished."""


class EditAnswer(Intent, frozen=True):
    """Edit the answer of `turn_id` in its place; the last answer if empty."""

    turn_id: str = ""


class SaveAnswer(Intent, frozen=True):
    """Make a version of the answer of `turn_id` with `edits`."""

    turn_id: str
    edits: tuple[Edit, ...]


class ContinueFrom(Intent, frozen=True):
    """Continue the answer of `turn_id` after the character before offset `end` of its source."""

    turn_id: str
    end: int


class ShowVersion(Intent, frozen=True):
    """Show version `index` of the turn that `turn_id` is a version of."""

    turn_id: str
    index: int


class Branch(Intent, frozen=True):
    """Open a new chat with the turns up to and including `turn_id`."""

    turn_id: str


class EditMessage(Intent, frozen=True):
    """Edit the message of `turn_id` in the composer; the last message if empty."""

    turn_id: str = ""


class CancelEdit(Intent, frozen=True):
    """Leave the edited message as it was."""


class QuoteText(Intent, frozen=True):
    """Quote `text` in the composer."""

    text: str


class SelectAnswer(Intent, frozen=True):
    """Show the documents as they were when `turn_id` was answered."""

    turn_id: str


class OpenAttachment(Intent, frozen=True):
    """Show attachment `index` of the message of `turn_id`, empty for the draft, in the Document tab."""

    turn_id: str
    index: int


class OpenImage(Intent, frozen=True):
    """Show image `index` of the `images` of a message, or of a call's result."""

    images: tuple[Image, ...]
    index: int


class OpenPassage(Intent, frozen=True):
    """Show `passage` in the Document tab."""

    passage: Passage


class OpenSource(Intent, frozen=True):
    """Show a source of the answer of `turn_id` in the Document tab."""

    turn_id: str
    source: Source


class OpenPlace(Intent, frozen=True):
    """Show `place` of `source`: a document in the Document tab, as it was read for the answer of `turn_id`; a
    message in the transcript.
    """

    turn_id: str
    source: ChatSource
    place: Place


class MoveToNewChat(Intent, frozen=True):
    """Open a new chat and take the draft along."""


class UseExample(Intent, frozen=True):
    """Put `message` into the composer."""

    message: Message


class Escape(Intent, frozen=True):
    """Escape was pressed in the message field."""


class OpenLibrary(Intent, frozen=True):
    """Open the Library window to attach a document from it."""


class AnswerButton(Struct, frozen=True):
    """A button under an answer, for which `ask` makes an intent; None copies the answer.

    `icon` is the name of its file in `resources/icons`. `title` is its tooltip and its name for assistive
    technology. `edits`: it is under answers only that a person can edit.
    """

    icon: str
    title: str
    ask: Callable[[AnswerEntry], Intent] | None
    edits: bool = False


# From left to right.
ANSWER_BUTTONS = (
    AnswerButton("copy", "Copy answer", None),
    AnswerButton("redo", "Regenerate", lambda answer: Regenerate(answer.turn_id)),
    AnswerButton("branch", "Branch into new chat", lambda answer: Branch(answer.turn_id)),
    AnswerButton("edit", strings.EDIT_ANSWER, lambda answer: EditAnswer(answer.turn_id), edits=True),
)
