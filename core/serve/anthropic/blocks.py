"""Messages as Anthropic's clients send them, in blocks, and as Draftlight asks them.

One of theirs may be several of ours: what a call gave is a turn of its own. A document in plain text
is an attachment, so that it can be read sparsely. The chat template decides which thoughts of earlier
answers the model reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from core.events import Attachment, Message, ToolCall
from core.serve.errors import field_error
from core.serve.fields import refused


class TextBlock(Struct, tag_field="type", tag="text"):
    """Text; the citations of earlier answers are ignored."""

    text: str
    citations: Any = None


class PlainText(Struct, tag_field="type", tag="text"):
    """A document's text as it stands."""

    data: str
    media_type: Literal["text/plain"] = "text/plain"


class InBlocks(Struct, tag_field="type", tag="content"):
    """A document's text in blocks."""

    content: str | list[TextBlock]


class Citations(Struct):
    """Whether an answer is to say where in the document it found something."""

    enabled: bool = False


class DocumentBlock(Struct, tag_field="type", tag="document"):
    """A document beside a message."""

    source: PlainText | InBlocks
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None


class CallBlock(Struct, tag_field="type", tag="tool_use"):
    """A call of an earlier answer."""

    id: str
    name: str
    input: dict[str, Any]


class ResultBlock(Struct, tag_field="type", tag="tool_result"):
    """What a call gave."""

    tool_use_id: str
    content: str | list[TextBlock] | None = None
    is_error: bool | None = None


class ThoughtBlock(Struct, tag_field="type", tag="thinking"):
    """What was thought before an earlier answer."""

    thinking: str
    signature: str = ""


class HiddenThoughtBlock(Struct, tag_field="type", tag="redacted_thinking"):
    """The same, unreadable."""

    data: str


Block = TextBlock | DocumentBlock | CallBlock | ResultBlock | ThoughtBlock | HiddenThoughtBlock
BLOCKS = (TextBlock, DocumentBlock, CallBlock, ResultBlock, ThoughtBlock, HiddenThoughtBlock)


class GivenMessage(Struct):
    """One message."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


def text_of(content: str | Sequence[TextBlock] | None) -> str:
    """All of it; blocks are lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content)


def messages_of(system: str | list[TextBlock] | None, given: Sequence[GivenMessage]) -> tuple[Message, ...]:
    """Draftlight's. Raises `ApiError` 400 that names the place of what cannot be asked."""
    if not given:
        raise field_error("messages", "“messages” is empty; it takes at least one message.")
    told = [Message("system", said)] if (said := text_of(system)) else []
    return (*told, *(one for place, each in enumerate(given) for one in _turns(f"messages[{place}]", each)))


def _turns(place: str, given: GivenMessage) -> Iterator[Message]:
    blocks: list[Block] = [TextBlock(given.content)] if isinstance(given.content, str) else given.content
    if not blocks and given.role != "assistant":
        raise field_error(f"{place}.content", f"“{place}.content” is empty.")
    allowed = {
        "system": (TextBlock,),
        "user": (TextBlock, DocumentBlock, ResultBlock),
        "assistant": (TextBlock, CallBlock, ThoughtBlock, HiddenThoughtBlock),
    }[given.role]
    texts: list[str] = []
    attachments: list[Attachment] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    for number, block in enumerate(blocks):
        where = f"{place}.content[{number}]"
        if not isinstance(block, allowed):
            raise field_error(
                where, f"“{where}” is of a type that a message of the role “{given.role}” cannot have."
            )
        match block:
            case TextBlock(text):
                texts.append(text)
            case DocumentBlock():
                attachments.append(_attachment(where, block, len(attachments) + 1))
            case CallBlock(call, name, arguments):
                calls.append(ToolCall(call, name, msgspec.json.encode(arguments).decode()))
            case ThoughtBlock(thought):
                thoughts.append(thought)
            case ResultBlock(call, content):
                if texts or attachments:
                    yield Message(given.role, "\n".join(texts), tuple(attachments))
                    texts, attachments = [], []
                said = text_of(content)
                yield Message("tool", f"Error: {said}" if block.is_error else said, tool_call_id=call)
    if texts or attachments or calls:
        thought = "\n\n".join(thoughts)
        yield Message(given.role, "\n".join(texts), tuple(attachments), tuple(calls), thought=thought)


def _attachment(where: str, block: DocumentBlock, number: int) -> Attachment:
    if block.citations is not None and block.citations.enabled:
        raise refused(f"{where}.citations", "answers do not cite; it takes “enabled”: false")
    text = block.source.data if isinstance(block.source, PlainText) else text_of(block.source.content)
    head = f"{block.context}\n\n" if block.context else ""
    return Attachment(block.title or f"Document {number}", head + text)
