"""Documents in the chat database: they outlive runs, are found, and are read out of a damaged file."""

from __future__ import annotations

import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.session.documents import Documents, KeptDocument
from app.store.chat_store import ChatStore
from app.store.copies import Backups
from app.store.database import ChecksumError
from app.store.library import Library
from core.events import Attachment
from tests.app.store.chats import chat_of

TIDES = "High water at noon. The Pilotenrat waits in the fog.\n" * 300
FOG = "Fog rules: nobody leaves.\n日本語の港 100%_sure"


def kept(folder: Path) -> dict[str, str]:
    """Fill a new home; the ids by name."""
    library = Library(folder)
    documents = Documents(library.documents)
    ids = {
        name: documents.keep(Attachment(name, text, len(text) // 4), "smollm").id
        for name, text in (("Tides.md", TIDES), ("Fog.md", FOG))
    }
    library.save(chat_of(1))
    assert library.close()
    return ids


def test_documents_are_there_in_the_next_run_with_all_that_is_known(tmp_path: Path) -> None:
    ids = kept(tmp_path)
    library = Library(tmp_path)
    documents = Documents(library.documents)
    assert {each.name: each.id for each in documents.listed()} == ids
    assert documents.text(ids["Tides.md"]) == TIDES
    assert documents.tokens_of(FOG, "smollm") == len(FOG) // 4
    documents.rename(ids["Fog.md"], "Fog rules")
    documents.learn_tokens(FOG, "qwen", 9)
    documents.remove(ids["Tides.md"])
    assert documents.text(ids["Tides.md"]) == TIDES
    library.close()
    library = Library(tmp_path)
    documents = Documents(library.documents)
    assert [(each.name, each.counts) for each in documents.listed()] == [
        ("Fog rules", {"smollm": len(FOG) // 4, "qwen": 9})
    ]
    documents.purge_removed()
    library.close()
    connection = sqlite3.connect(tmp_path / "chats.db")
    assert connection.execute("SELECT count(*) FROM documents").fetchone() == (1,)
    assert TIDES[:40].encode() not in b"".join(p.read_bytes() for p in tmp_path.glob("chats.db-wal"))
    connection.close()


def test_a_document_that_is_not_on_the_disk_yet_can_be_read(tmp_path: Path) -> None:
    Library(tmp_path).close()
    library = Library(tmp_path)
    assert library.flush()
    other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # nothing can be written meanwhile
    documents = Documents(library.documents)
    fog = documents.keep(Attachment("Fog.md", FOG))
    documents.rename(fog.id, "Fog rules")
    assert documents.text(fog.id) == FOG
    other.execute("ROLLBACK")
    other.close()
    assert library.flush()
    assert [each.name for each in library.documents.documents()] == ["Fog rules"]
    library.close()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("fog", ["Fog.md", "Tides.md"]),
        ("fog rul", ["Fog.md"]),
        ("pilot", ["Tides.md"]),
        ("tides.md", ["Tides.md"]),
        ("rat waits", ["Tides.md"]),  # the middle of a word
        ("語の港", ["Fog.md"]),
        ("100%_", ["Fog.md"]),
        ("1%0", []),
        ('"', []),
        ("fog nowhere", []),
        ("", []),
    ],
)
@pytest.mark.parametrize("full_text", [True, False])
def test_searching(tmp_path: Path, query: str, names: list[str], full_text: bool) -> None:
    ids = kept(tmp_path)
    store = ChatStore(tmp_path / "chats.db", full_text=full_text)
    hits = store.document_rows.search(query)
    assert sorted(hit.id for hit in hits) == sorted(ids[name] for name in names)
    for hit in hits:
        marked = {hit.passage[a:b].casefold() for a, b in hit.marks}
        assert marked <= {word.casefold() for word in query.split()}
        assert len(hit.passage) < 400
    store.close()


def test_a_renamed_document_is_found_by_its_new_name_only_and_a_purged_one_not_at_all(tmp_path: Path) -> None:
    ids = kept(tmp_path)
    store = ChatStore(tmp_path / "chats.db")
    with store.transaction():
        rows = store.document_rows
        fog = next(each for each in rows.all() if each.name == "Fog.md")
        rows.change(KeptDocument(fog.id, "Ice", fog.digest, fog.characters, fog.added, fog.used))
        rows.purge(ids["Tides.md"])
    assert [hit.id for hit in store.document_rows.search("ice")] == [fog.id]
    assert store.document_rows.search("pilot") == []
    store.connection.execute("INSERT INTO document_words (document_words) VALUES ('integrity-check')")
    store.close()


def test_what_was_kept_without_full_text_is_found_with_it(tmp_path: Path) -> None:
    plain = ChatStore(tmp_path / "chats.db", full_text=False)
    now = datetime.now(UTC)
    with plain.transaction():
        plain.document_rows.add(KeptDocument("d", "Tides", "x", len(TIDES), now, now), TIDES)
    plain.close()
    store = ChatStore(tmp_path / "chats.db", full_text=True)
    hits = store.document_rows.search("pilot")
    store.close()
    assert [hit.id for hit in hits] == ["d"]
    assert hits[0].marks


def test_a_common_word_in_a_long_book_is_found_at_once(tmp_path: Path) -> None:
    """What SQLite shows of a match takes the square of a word's places: the window stood for minutes."""
    store = ChatStore(tmp_path / "chats.db")
    text, now = "The tide turns at noon, and the pilots wait. " * 60_000, datetime.now(UTC)
    with store.transaction():
        store.document_rows.add(KeptDocument("d", "Book", "x", len(text), now, now), text)
    begun_s = time.process_time()
    hits = [*store.document_rows.search("pilots"), *store.document_rows.search("ilots")]
    assert time.process_time() - begun_s < 30
    assert [hit.passage[slice(*hit.marks[0])] for hit in hits] == ["pilots", "ilots"]
    store.close()


@pytest.mark.parametrize("column", ["text", "name", "counts"])
def test_a_changed_letter_is_noticed_and_the_document_read_from_a_backup(tmp_path: Path, column: str) -> None:
    ids = kept(tmp_path)
    Backups(tmp_path / "chats.db").make()
    connection = sqlite3.connect(tmp_path / "chats.db")
    connection.execute(f"UPDATE documents SET {column} = replace({column}, 'o', 'a')")
    connection.commit()
    connection.close()
    with ChatStore(tmp_path / "chats.db", read_only=True) as store, pytest.raises(ChecksumError):
        store.check()
    library = Library(tmp_path)
    documents = Documents(library.documents)
    assert documents.text(ids["Fog.md"]) == FOG
    assert library.damaged
    documents.refresh()
    assert {each.name: each.id for each in documents.listed()} == ids
    documents.keep(Attachment("Ice.md", "thin ice"))
    library.repair()
    assert library.close()
    again = Library(tmp_path)
    found = Documents(again.documents)
    assert {each.name for each in found.listed()} == {"Ice.md", *ids}
    assert found.text(ids["Tides.md"]) == TIDES
    assert again.load("c1") == chat_of(1)
    again.close()


def test_where_nothing_is_saved_documents_last_for_the_run(tmp_path: Path) -> None:
    ids = kept(tmp_path)
    first = Library(tmp_path)
    second = Library(tmp_path)
    assert second.elsewhere
    documents = Documents(second.documents)
    ice = documents.keep(Attachment("Ice.md", "thin ice"))
    documents.rename(ids["Fog.md"], "Mist")
    documents.remove(ids["Tides.md"])
    documents.purge_removed()
    documents.refresh()
    assert sorted(each.name for each in documents.listed()) == ["Ice.md", "Mist"]
    assert [hit.id for hit in documents.search("thin")] == [ice.id]
    assert documents.search("pilot") == []
    assert documents.text(ids["Fog.md"]) == FOG
    second.close()
    assert {each.name for each in first.documents.documents()} == {"Tides.md", "Fog.md"}
    first.close()
