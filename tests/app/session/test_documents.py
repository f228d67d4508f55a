"""The library's state: what is kept once, what is counted once, what can be taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from app.session.documents import Documents
from app.store.library import KeptDocuments, Library
from core.events import Attachment


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def archive() -> Iterator[KeptDocuments]:
    with closing(Library(None)) as library:
        yield library.documents


def test_a_text_is_kept_once_under_its_first_name(archive: KeptDocuments) -> None:
    documents = Documents(archive, Clock())
    first = documents.keep(Attachment("Tides.md", "high water", 3))
    documents.keep(Attachment("Fog.md", "low cloud"))
    assert documents.learn_tokens("high water", "smollm", 3)
    again = documents.keep(Attachment("Copy of tides.md", "high water", 4))
    assert again.id == first.id
    assert [(each.name, each.counts) for each in documents.listed()] == [
        ("Tides.md", {"smollm": 3}),
        ("Fog.md", {}),
    ]


def test_what_is_attached_is_used_last_and_brings_its_tokens(archive: KeptDocuments) -> None:
    documents = Documents(archive, Clock())
    tides = documents.keep(Attachment("Tides.md", "high water"))
    documents.keep(Attachment("Fog.md", "low cloud"))
    assert documents.learn_tokens("high water", "smollm", 3)
    assert documents.learn_tokens("low cloud", "smollm", 2)
    assert documents.attach(tides.id, "smollm") == Attachment("Tides.md", "high water", 3)
    assert documents.attach(tides.id, "qwen").tokens == 0
    assert documents.listed()[0].id == tides.id
    assert documents.tokens_of("low cloud", "smollm") == 2
    assert documents.tokens_of("low cloud", "qwen") is None
    assert documents.tokens_of("elsewhere", "smollm") is None
    assert documents.learn_tokens("low cloud", "qwen", 5)
    assert not documents.learn_tokens("low cloud", "qwen", 5)
    assert not documents.learn_tokens("elsewhere", "qwen", 5)
    assert documents.tokens_of("low cloud", "qwen") == 5


def test_removing_can_be_taken_back_until_it_is_purged(archive: KeptDocuments) -> None:
    documents = Documents(archive, Clock())
    tides = documents.keep(Attachment("Tides.md", "high water"))
    documents.remove(tides.id)
    assert documents.listed() == ()
    assert documents.search("water") == []
    assert documents.tokens_of("high water", "smollm") is None
    documents.restore(tides.id)
    assert [hit.id for hit in documents.search("WATER")] == [tides.id]
    documents.remove(tides.id)
    documents.purge_removed()
    documents.restore(tides.id)
    assert documents.listed() == ()
    assert archive.documents() == []
    with pytest.raises(KeyError):
        documents.text(tides.id)


def test_removed_documents_are_in_the_order_of_their_removal(archive: KeptDocuments) -> None:
    documents = Documents(archive, Clock())
    kept = [documents.keep(Attachment(f"{name}.md", name)).id for name in ("Tides", "Fog", "Wind")]
    for at in (2, 0, 1):
        documents.remove(kept[at])
    assert [each.id for each in documents.removed] == [kept[2], kept[0], kept[1]]


def test_of_two_documents_with_one_text_the_one_that_is_not_removed_is_found(archive: KeptDocuments) -> None:
    documents = Documents(archive, Clock())
    twins = [documents.keep(Attachment("Tides.md", "high water"))]
    twins.append(replace(twins[0], id="from a backup"))
    archive.add(twins[1], "high water")
    documents.refresh()
    for removed, other in (twins, twins[::-1]):
        documents.remove(removed.id)
        assert documents.of_text("high water") == documents.get(other.id)
        documents.restore(removed.id)
    documents.remove(twins[0].id)
    documents.remove(twins[1].id)
    documents.purge_removed()
    assert archive.documents() == []


def test_what_was_removed_and_is_kept_again_is_there_under_its_new_name(archive: KeptDocuments) -> None:
    documents = Documents(archive, Clock())
    tides = documents.keep(Attachment("Tides.md", "high water"))
    documents.rename(tides.id, "  The \n tides ")
    documents.rename(tides.id, "   ")
    assert documents.get(tides.id).name == "The tides"
    documents.remove(tides.id)
    documents.keep(Attachment("New.md", "high water"))
    assert [each.name for each in documents.listed()] == ["New.md"]
    documents.purge_removed()
    assert len(documents.listed()) == 1
