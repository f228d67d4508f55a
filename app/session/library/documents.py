"""Documents: the library as the window knows it: what is kept, under which names, and how long each is.

A text is kept once, however often and under whatever name it is kept again. What is removed can be taken
back until it is purged. Tokens that a worker counted are kept by the tokenizer's family, so that nobody
counts them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import uuid4

from msgspec.structs import replace

from app.session.chats.chats import utc_now
from app.session.library.document import DocumentHit, KeptDocument, digest_of
from app.session.library.document_archive import DocumentArchive, MemoryDocuments
from core.errors import RequestError
from core.events import Attachment


class Documents:
    """`now` gives the times, `erased` gets the text of each document that is deleted for good.

    What a method does is on its way to the archive when it returns.
    """

    def __init__(
        self,
        archive: DocumentArchive | None = None,
        now: Callable[[], datetime] = utc_now,
        erased: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._archive: DocumentArchive = archive or MemoryDocuments()
        self._now = now
        self._erased = erased
        self._known: dict[str, KeptDocument] = {}
        self._by_digest: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Ask the archive anew: it was repaired."""
        self._known = {each.id: each for each in self._archive.documents()}
        self._by_digest = {each.digest: each.id for each in self._known.values()}

    def listed(self) -> tuple[KeptDocument, ...]:
        """Those that are kept, the one used last first."""
        living = [each for each in self._known.values() if each.removed is None]
        return tuple(sorted(living, key=lambda each: (each.used.timestamp(), each.name), reverse=True))

    def get(self, document_id: str) -> KeptDocument:
        """Raises `KeyError`."""
        return self._known[document_id]

    def of_text(self, text: str) -> KeptDocument | None:
        """The document that has this text, if it is kept."""
        found = self._known.get(self._by_digest.get(digest_of(text), ""))
        return found if found and found.removed is None else None

    def text(self, document_id: str) -> str:
        """Raises `KeyError`, and `RequestError` if it cannot be read."""
        return self._archive.text(document_id)

    def search(self, query: str) -> Sequence[DocumentHit]:
        """Those that match, best first."""
        return [hit for hit in self._archive.search(query) if self._is_kept(hit.id)]

    # ---- changes

    def keep(self, attachment: Attachment, family: str = "") -> KeptDocument:
        """Keep it; if its text is kept already, that document. `family` is whose tokens it counts."""
        counts = {family: attachment.tokens} if family and attachment.tokens else {}
        digest, now = digest_of(attachment.text), self._now()
        old = self._known.get(self._by_digest.get(digest, ""))
        if old:
            kept = replace(old, used=now, counts={**old.counts, **counts}, removed=None)
            if old.removed:
                kept = replace(kept, name=attachment.name, added=now)
            self._change(kept)
            return kept
        kept = KeptDocument(uuid4().hex, attachment.name, digest, len(attachment.text), now, now, counts)
        self._known[kept.id] = kept
        self._by_digest[digest] = kept.id
        self._archive.add(kept, attachment.text)
        return kept

    def attach(self, document_id: str, family: str = "") -> Attachment:
        """It as an attachment, with its tokens if they are known. Raises as `text` does."""
        text, found = self.text(document_id), self._known[document_id]
        self._change(replace(found, used=self._now()))
        return Attachment(found.name, text, found.counts.get(family, 0))

    def rename(self, document_id: str, name: str) -> None:
        """Nothing is no name."""
        found, name = self._known[document_id], " ".join(name.split())
        if name and name != found.name:
            self._change(replace(found, name=name))

    def remove(self, document_id: str) -> None:
        """Out of the list, and gone with the next `purge_removed`."""
        self._change(replace(self._known[document_id], removed=self._now()))

    def restore(self, document_id: str) -> None:
        """Back into the list."""
        found = self._known.get(document_id)
        if found and found.removed:
            self._change(replace(found, removed=None))

    def purge_removed(self) -> None:
        """All that was removed goes for good."""
        for each in [each for each in self._known.values() if each.removed]:
            with suppress(KeyError, RequestError):  # what cannot be read any more goes all the same
                self._erased(self._archive.text(each.id))
            del self._known[each.id]
            del self._by_digest[each.digest]
            self._archive.purge(each.id)

    # ---- tokens

    def tokens_of(self, text: str, family: str) -> int | None:
        """What was counted of `text` with that tokenizer; None if it is not kept or was not counted."""
        found = self.of_text(text) if family and text else None
        return found.counts.get(family) if found else None

    def learn_tokens(self, text: str, family: str, tokens: int) -> bool:
        """`text` was counted. Whether that is news about a kept document."""
        found = self.of_text(text) if family and text else None
        if found is None or found.counts.get(family) == tokens:
            return False
        self._change(replace(found, counts={**found.counts, family: tokens}))
        return True

    def _change(self, document: KeptDocument) -> None:
        self._known[document.id] = document
        self._archive.change(document)

    def _is_kept(self, document_id: str) -> bool:
        found = self._known.get(document_id)
        return found is not None and found.removed is None
