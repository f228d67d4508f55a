"""Kept documents are found by their names and texts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.documents import KeptDocument
from app.store.chat_store import ChatStore, StoredDocument, key_of
from tests.app.store.chats import NOON

TEXTS = {
    "Tides.md": "High water at noon. The Pilotenrat waits in the fog.\n" * 300,
    "Fog.md": "Fog rules: nobody leaves.\n日本語の港 100%_sure",
    "Ice.md": "Fog rules, too.",
}


def kept(name: str) -> KeptDocument:
    return KeptDocument(name[0], name, "x", 9, NOON, NOON, removed=NOON if name == "Ice.md" else None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    with ChatStore(tmp_path / "chats.db") as store:
        with store.transaction():
            for name, text in TEXTS.items():
                stored = StoredDocument(kept(name), text)
                store.do(key_of(stored), stored)
        yield store


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("fog", ["F", "T"]),  # the name first
        ("fog rul", ["F"]),
        ("pilot", ["T"]),
        ("tides.md", ["T"]),
        ("tides pilot", ["T"]),  # in the name and in the text
        ("rat waits", ["T"]),  # the middle of a word
        ("語の港", ["F"]),
        ("100%_", ["F"]),
        ("1%0", []),
        ('"', []),
        ("fog nowhere", []),
        pytest.param(" ".join(map(str, range(9_000))), [], id="many words"),
        pytest.param("x" * 60_000, [], id="a long word"),
        ("", []),
    ],
)
def test_searching(store: ChatStore, query: str, found: list[str]) -> None:
    hits = store.search_documents(query)
    assert [hit.id for hit in hits] == found
    for hit in hits:
        marked = {hit.passage[a:b].casefold() for a, b in hit.marks}
        assert marked <= {word.casefold() for word in query.split()}
        assert len(hit.passage) < 400


def test_a_renamed_document_is_found_by_its_new_name_only(store: ChatStore) -> None:
    with store.transaction():
        store.do(("documents", "F"), replace(kept("Fog.md"), name="Mist"))
        store.do(("documents", "T"), None)
    assert [hit.id for hit in store.search_documents("mist")] == ["F"]
    assert store.search_documents("fog.md") == store.search_documents("pilot") == []
    assert store.text("F") == TEXTS["Fog.md"]


def test_a_common_word_in_a_long_book_is_found_at_once(store: ChatStore) -> None:
    """What SQLite shows of a match takes the square of a word's places: the window stood for minutes."""
    text = "The tide turns at noon, and the navigators wait. " * 60_000
    with store.transaction():
        store.do(("texts", "B"), StoredDocument(kept("Book"), text))
    begun_s = time.process_time()
    hits = [*store.search_documents("navigators"), *store.search_documents("avigators")]
    assert time.process_time() - begun_s < 30
    assert [hit.passage[slice(*hit.marks[0])] for hit in hits] == ["navigators", "avigators"]
