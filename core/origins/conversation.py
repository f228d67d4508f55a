"""Origins of an answer to messages, whose texts are the sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.events import Message, Passage
from core.origins.index import Index
from core.origins.tracer import trace
from core.origins.types import PASTED_CHARACTERS, Origins, Source, spans_read


class Conversation:
    """The sources of `messages`, which end with the question.

    `sources`: first all attachments, by their number in `Passage.source`; then pasted texts, then results of
    tools. `question`: the user's messages. Not thread-safe.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        asked = [message.content for message in messages if message.role == "user"]
        attached = [each for message in messages for each in message.attachments]
        results = [message.content for message in messages if message.role == "tool"]
        pasted = [text for text in asked if len(text) > PASTED_CHARACTERS]
        self.documents = len(attached)
        self.sources = [
            *(Source(each.name, each.text) for each in attached),
            *(Source("Pasted text", text) for text in pasted),
            *(Source("Result of a tool", text) for text in results),
        ]
        self.question = "\n\n".join(asked)
        self._answers = [message.content for message in messages if message.role == "assistant"]
        self._indexes = [Index(source.text) for source in self.sources]

    def build(self) -> None:
        """Make the indexes; seconds for long documents. `trace` calls it if needed."""
        for index in self._indexes:
            index.build()

    def trace(
        self, answer: str, passages: Sequence[Passage] = (), left_out: Iterable[tuple[int, int]] = ()
    ) -> Origins:
        """Origins of `answer`. `passages`: the reading map of its prompt; empty: all was read."""
        self.build()
        read = [
            spans_read(passages, number, len(source.text)) if number < self.documents else None
            for number, source in enumerate(self.sources)
        ]
        earlier: list[Origins] = []
        for text in self._answers:
            earlier.append(trace(text, self.sources, self._indexes, self.question, earlier=earlier))
        return trace(
            answer,
            self.sources,
            self._indexes,
            self.question,
            earlier=earlier,
            read=read,
            left_out=left_out,
        )
