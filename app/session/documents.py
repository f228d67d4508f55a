"""Documents: the kept documents, their names, and their lengths in tokens. Pure.

A document is stored once, however often and under whatever name it is kept again. A removed document can be
restored until it is purged. Token counts are stored by tokenizer family, so that a text is counted once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from app.session.chats.chats import utc_now
from core.errors import RequestError
from core.events import Attachment, Scans
from core.events.wire import well_formed, well_formed_record


class KeptDocument(Struct, frozen=True):
    """A document without its text. `digest` identifies the text, `counts` has its tokens by tokenizer family.

    `used` is the time of the last attachment, `removed` that of the removal. `pages`, `scans`: see
    `Attachment`. Scanned pages are not kept: they are drawn from the file, while it exists.
    """

    id: str
    name: str
    digest: str
    characters: int
    added: datetime
    used: datetime
    counts: dict[str, int] = field(default_factory=dict)
    removed: datetime | None = None
    pages: tuple[int, ...] = ()
    scans: Scans | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """Equal for documents that are one: see `identity_of`."""
        return self.digest, self.scans.hash if self.scans else ""


class DocumentHit(Struct, frozen=True):
    """A search result. `passage` is empty if only the name matched; `marks` as in `Hit`.

    `similar`: the passage is similar in meaning but does not have the words.
    """

    id: str
    passage: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    similar: bool = False


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def identity_of(attachment: Attachment) -> tuple[str, str]:
    """The digest of the text, and the hash of a PDF with scanned pages: two of these may have one text."""
    return digest_of(attachment.text), attachment.scans.hash if attachment.scans else ""


class DocumentArchive(Protocol):
    """The storage of documents: `app.store.library.KeptDocuments`. All calls return at once; saving happens
    later, and reads return the newest saved state."""

    def documents(self) -> Sequence[KeptDocument]:
        """Returns all documents, removed ones included, in no order."""
        ...

    def text(self, document_id: str) -> str:
        """Raises `KeyError` for an unknown id, `RequestError` if the text cannot be read."""
        ...

    def add(self, document: KeptDocument, text: str) -> None: ...

    def change(self, document: KeptDocument) -> None:
        """Replaces the facts of a document; the text stays."""
        ...

    def purge(self, document_id: str) -> None: ...

    def search(self, query: str) -> Sequence[DocumentHit]:
        """Returns the documents that have all words of `query`, best first, without removed ones."""
        ...


class Documents:
    """`now` returns the time; `erased` gets the text of each permanently deleted document.

    A change has been handed to the archive when its method returns.
    """

    def __init__(
        self,
        archive: DocumentArchive,
        now: Callable[[], datetime] = utc_now,
        erased: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._archive = archive
        self._now = now
        self._erased = erased
        self._known: dict[str, KeptDocument] = {}
        self.refresh()

    def refresh(self) -> None:
        """Reads the archive again after a repair."""
        self._known = {each.id: each for each in self._archive.documents()}

    def listed(self) -> tuple[KeptDocument, ...]:
        """Returns the documents that are not removed, the last used first."""
        living = [each for each in self._known.values() if each.removed is None]
        return tuple(sorted(living, key=lambda each: (each.used.timestamp(), each.name), reverse=True))

    @property
    def removed(self) -> list[KeptDocument]:
        """The removed documents, the one removed last at the end."""
        removed = [each for each in self._known.values() if each.removed]
        return sorted(removed, key=lambda each: each.removed.timestamp() if each.removed else 0.0)

    def get(self, document_id: str) -> KeptDocument:
        """Raises `KeyError`."""
        return self._known[document_id]

    def of_text(self, text: str) -> KeptDocument | None:
        """Returns a document with this text, if one is kept."""
        digest = digest_of(text)
        found = self._first(each for each in self._known.values() if each.digest == digest)
        return found if found and found.removed is None else None

    def of(self, attachment: Attachment) -> KeptDocument | None:
        """Returns the document that `attachment` is, if it is kept."""
        found = self._same(attachment)
        return found if found and found.removed is None else None

    def text(self, document_id: str) -> str:
        """Raises `KeyError` for an unknown id, `RequestError` if the text cannot be read."""
        return self._archive.text(document_id)

    def search(self, query: str) -> Sequence[DocumentHit]:
        """Returns the matching documents, best first."""
        return [hit for hit in self._archive.search(query) if self._is_kept(hit.id)]

    # ---- changes

    def keep(self, attachment: Attachment) -> KeptDocument:
        """Keeps `attachment` and returns it, or the document that it is already.

        Not its count, which may be another tokenizer's: `learn_tokens`.
        """
        attachment = well_formed_record(attachment)
        now, old, scans = self._now(), self._same(attachment), attachment.scans
        if old:
            kept = replace(old, used=now, removed=None, scans=scans)  # the file may have been moved
            if old.removed:
                kept = replace(kept, name=attachment.name, added=now, pages=attachment.pages)
            self._change(kept)
            return kept
        size, pages = len(attachment.text), attachment.pages
        digest, id = digest_of(attachment.text), uuid4().hex
        kept = KeptDocument(id, attachment.name, digest, size, now, now, pages=pages, scans=scans)
        self._known[kept.id] = kept
        self._archive.add(kept, attachment.text)
        return kept

    def attach(self, document_id: str, family: str = "") -> Attachment:
        """Returns the document as an attachment, with its token count if known. Raises as `text`."""
        text, found = self.text(document_id), self._known[document_id]
        self._change(replace(found, used=self._now()))
        return Attachment(found.name, text, found.counts.get(family, 0), scans=found.scans, pages=found.pages)

    def rename(self, document_id: str, name: str) -> None:
        """Renames a document; an empty name changes nothing."""
        found, name = self._known[document_id], " ".join(well_formed(name).split())
        if name and name != found.name:
            self._change(replace(found, name=name))

    def remove(self, document_id: str) -> None:
        """Removes a document from the list; `purge_removed` deletes it."""
        self._change(replace(self._known[document_id], removed=self._now()))

    def restore(self, document_id: str) -> None:
        found = self._known.get(document_id)
        if found and found.removed:
            self._change(replace(found, removed=None))

    def purge_removed(self) -> None:
        """Deletes all removed documents permanently."""
        for each in self.removed:
            with suppress(KeyError, RequestError):  # an unreadable document is deleted too
                self._erased(self._archive.text(each.id))
            del self._known[each.id]
            self._archive.purge(each.id)

    # ---- tokens

    def tokens_of(self, text: str, family: str) -> int | None:
        """Returns the token count of `text`; None if it is not kept or not counted with that tokenizer."""
        found = self.of_text(text) if family and text else None
        return found.counts.get(family) if found else None

    def learn_tokens(self, text: str, family: str, tokens: int) -> bool:
        """Stores the token count of `text`; returns whether it was new for a kept document."""
        found = self.of_text(text) if family and text else None
        if found is None or found.counts.get(family) == tokens:
            return False
        self._change(replace(found, counts={**found.counts, family: tokens}))
        return True

    def _same(self, attachment: Attachment) -> KeptDocument | None:
        identity = identity_of(attachment)
        return self._first(each for each in self._known.values() if each.identity == identity)

    def _first(self, found: Iterable[KeptDocument]) -> KeptDocument | None:
        """Returns one of `found`; of two, as after a restored backup, one that is not removed."""
        return min(found, key=lambda each: each.removed is not None, default=None)

    def _change(self, document: KeptDocument) -> None:
        self._known[document.id] = document
        self._archive.change(document)

    def _is_kept(self, document_id: str) -> bool:
        found = self._known.get(document_id)
        return found is not None and found.removed is None
