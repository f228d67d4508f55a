"""DocumentArchive: where kept documents are, as the session sees it, and one that forgets.

The lasting one is `app.store.documents`; `MemoryDocuments` serves runs that shall leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.session.chats.archive import passage_of
from app.session.library.document import DocumentHit, KeptDocument


class DocumentArchive(Protocol):
    """All calls return at once; saving happens when it happens, and what was saved can be read."""

    def documents(self) -> Sequence[KeptDocument]:
        """All of them, removed ones too, in no order."""
        ...

    def text(self, document_id: str) -> str:
        """Raises `KeyError` if there is none, `RequestError` if it cannot be read."""
        ...

    def add(self, document: KeptDocument, text: str) -> None: ...

    def change(self, document: KeptDocument) -> None:
        """Other facts about it; the text stays."""
        ...

    def purge(self, document_id: str) -> None: ...

    def search(self, query: str) -> Sequence[DocumentHit]:
        """Those that have all words of `query`, best first. Removed ones are left out."""
        ...


class MemoryDocuments:
    """Keeps documents for this run only."""

    def __init__(self) -> None:
        self._documents: dict[str, KeptDocument] = {}
        self._texts: dict[str, str] = {}

    def documents(self) -> Sequence[KeptDocument]:
        return list(self._documents.values())

    def text(self, document_id: str) -> str:
        return self._texts[document_id]

    def add(self, document: KeptDocument, text: str) -> None:
        self._documents[document.id] = document
        self._texts[document.id] = text

    def change(self, document: KeptDocument) -> None:
        self._documents[document.id] = document

    def purge(self, document_id: str) -> None:
        self._documents.pop(document_id, None)
        self._texts.pop(document_id, None)

    def search(self, query: str) -> Sequence[DocumentHit]:
        words = query.split()
        living = (each for each in self._documents.values() if each.removed is None)
        hits = (find_in(each, self._texts.get(each.id, ""), words) for each in living)
        return [hit for hit in hits if hit] if words else []


def find_in(document: KeptDocument, text: str, words: Sequence[str]) -> DocumentHit | None:
    """Whether name and text have all `words`; the passage, if the text has one of them."""
    name, body = document.name.casefold(), text.casefold()
    sought = [word.casefold() for word in words]
    if not all(word in name or word in body for word in sought):
        return None
    if not any(word in body for word in sought):
        return DocumentHit(document.id)
    return DocumentHit(document.id, *passage_of(text, words))
