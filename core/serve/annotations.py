"""Annotations: where the words of a served answer occur in its request's documents, in OpenAI's shapes.

A request asks for them with `"draftlight": {"annotations": true}`; see docs/server.md.
"""

from __future__ import annotations

import asyncio
from typing import Any

from core.events import Event, Generate, Passage, ReadingMap
from core.origins import Conversation, Fact, Origins, Place, Run

# Most characters of a passage that an annotation quotes.
_QUOTE_CHARACTERS = 1000


class Annotations:
    """The annotations of one answer. `generate`: its command. Owned by the event loop."""

    def __init__(self, generate: Generate) -> None:
        self._given = Conversation(generate.messages)
        self._passages: tuple[Passage, ...] = ()

    def hear(self, happening: Event) -> None:
        """Note the reading map among the events of the answer."""
        if isinstance(happening, ReadingMap):
            self._passages = happening.passages

    async def settle(self) -> None:
        """Make the indexes of the documents, which takes seconds for long ones, outside the event loop."""
        await asyncio.to_thread(self._given.build)

    def of_chat(self, text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Annotations of a chat's message `text`, as those of OpenAI's assistants, and its facts."""
        origins = self._origins(text)
        found = []
        for run in origins.runs:
            cited = self._cited(run)
            citation = {name: cited.pop(name) for name in ("file_id", "filename", "quote")}
            about = {
                "type": "file_citation",
                "text": text[run.start : run.end],
                "start_index": run.start,
                "end_index": run.end,
            }
            found.append(about | {"file_citation": citation} | cited)
        return found, self._facts(origins)

    def of_response(self, text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Annotations of an `output_text` of OpenAI's responses, and its facts."""
        origins = self._origins(text)
        found = []
        for run in origins.runs:
            about = {
                "type": "file_citation",
                "index": run.end,
                "start_index": run.start,
                "end_index": run.end,
            }
            found.append(about | self._cited(run))
        return found, self._facts(origins)

    def _origins(self, text: str) -> Origins:
        return self._given.trace(text, self._passages)

    def _cited(self, run: Run) -> dict[str, Any]:
        source = self._given.sources[run.place.source]
        quote = source.text[run.place.start : run.place.end]
        file = {
            "file_id": f"document-{run.place.source + 1}",
            "filename": source.name,
            "quote": quote[:_QUOTE_CHARACTERS],
        }
        return file | _place(run.place)

    def _facts(self, origins: Origins) -> list[dict[str, Any]]:
        return [_fact(fact) for fact in origins.facts]


def _place(place: Place) -> dict[str, Any]:
    """A place, with the names of Anthropic's citations."""
    return {
        "document_index": place.source,
        "start_char_index": place.start,
        "end_char_index": place.end,
    }


def _fact(fact: Fact) -> dict[str, Any]:
    told = {
        "start_index": fact.start,
        "end_index": fact.end,
        "kind": fact.kind,
        "state": fact.state,
    }
    return told | (_place(fact.place) if fact.place else {})
