"""The store as a machine: drawn steps on a home, and a dict that says what has to be in it after each.

Every record has a word of its own, by which a search must find it and nothing else.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.chats.archive import summary_of
from app.session.chats.conversation import Conversation
from app.session.chats.projects import Project
from app.session.documents import KeptDocument, digest_of
from app.store.copies import Backups
from app.store.library import Library
from core.events import Attachment, Message
from tests.app.store.chats import NOON, finished, written
from tests.app.store.disk import full_disk
from tests.thinned import thinned

_STEPS = 50
_WRITES = ("ask", "write", "finish", "again", "edit", "rename", "discard", "cut", "purge")
_OTHERS = ("project", "document", "rename document", "purge other")
_EVENTS = ("flush", "reopen", "crash", "full disk", "full start", "second", "back up", "damage", "lose")
_HARM = (
    "UPDATE chats SET state = CAST(replace(state, 'x', 'y') AS BLOB)",
    "UPDATE chats SET title = title || '!'",
    "UPDATE turns SET state = CAST(replace(state, 'x', 'y') AS BLOB)",
    "UPDATE turns SET place = place + 9",
    "UPDATE parts SET place = place + 999",
    "UPDATE projects SET state = x'c1'",
    "UPDATE texts SET text = text || '!'",
    "DELETE FROM turns WHERE place = 0",
    "DROP TABLE words",
    "DROP TABLE parts",
)


class Walk:
    """A home, and what is in it: `chats` and `projects` by their ids, `documents` with their texts."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.folder, self.dice, self.number = folder, dice, 0
        self.chats: dict[str, Conversation] = {}
        self.projects: dict[str, Project] = {}
        self.documents: dict[str, tuple[KeptDocument, str]] = {}
        self.library = Library(folder)

    def step(self, what: str) -> None:
        self.number += 1
        getattr(self, what.replace(" ", "_"))()

    def check(self, library: Library | None = None) -> None:
        library = library or self.library
        assert {each.id: each for each in library.summaries()} == {
            each.id: summary_of(each) for each in self.chats.values()
        }
        for chat in self.chats.values():
            assert library.load(chat.id) == chat
        with pytest.raises(KeyError):
            library.load("never")
        assert {each.id: each for each in library.projects()} == self.projects
        documents = library.documents
        assert {each.id: each for each in documents.documents()} == {
            key: document for key, (document, _) in self.documents.items()
        }
        for key, (document, text) in self.documents.items():
            assert documents.text(key) == text
            assert [hit.id for hit in documents.search(f"text-{key}")] == [key]
            assert [hit.id for hit in documents.search(document.name)] == [key]
        for chat in self.chats.values():
            hits = [hit.chat_id for hit in library.search(f"question-{chat.id}")]
            hidden = chat.deleted or not chat.turns
            if not (
                library.damaged and hidden
            ):  # a backup may be from a moment before; `Chats` leaves it out
                assert hits == ([] if hidden else [chat.id])

    # ---- writes

    def save(self, chat: Conversation) -> None:
        self.chats[chat.id] = chat
        self.library.save(chat)

    def any(self) -> Conversation:
        if not self.chats:
            self.save(Conversation(f"c{self.number}x", NOON))
        return self.dice.choice(list(self.chats.values()))

    def ask(self) -> None:
        chat = self.any() if self.dice.random() < 0.6 else Conversation(f"c{self.number}x", NOON)
        question = Message("user", f"Question-{chat.id} {self.number}", (Attachment("a.md", "text"),))
        self.save(chat.ask(f"t{self.number}", question, NOON))

    def write(self) -> None:
        chat = self.any()
        if not chat.turns or chat.turns[-1].answer.over:
            chat = chat.ask(f"t{self.number}", Message("user", f"question-{chat.id}"))
        for _ in range(self.dice.randint(1, 4)):
            chat = chat.write(chat.turns[-1].id, written("r", 7, f"w{self.number}-"))
            self.save(chat)
            if self.dice.random() < 0.5:
                self.library.flush()

    def finish(self) -> None:
        chat = self.any()
        if chat.turns:
            self.save(chat.finish(chat.turns[-1].id, finished("r", 3)))

    def again(self) -> None:
        chat = self.any()
        if chat.turns:
            self.save(chat.ask_again(f"t{self.number}", asked=NOON))
            self.save(self.chats[chat.id].show_version(f"t{self.number}", 0))

    def edit(self) -> None:
        """Any turn changes, not only the last."""
        chat = self.any()
        if chat.turns:
            place = self.dice.randrange(len(chat.turns))
            user = Message("user", f"question-{chat.id} edited {self.number}")
            changed = replace(chat.turns[place], user=user, asked=NOON)
            self.save(replace(chat, turns=(*chat.turns[:place], changed, *chat.turns[place + 1 :])))

    def rename(self) -> None:
        chat = self.any()
        self.save(chat.renamed(f"Name {self.number}") if not chat.name else replace(chat, name=""))

    def discard(self) -> None:
        chat = self.any()
        self.save(chat.with_deleted(None if chat.deleted else NOON))

    def cut(self) -> None:
        chat = self.any()
        self.save(replace(chat, turns=chat.turns[:-1]))

    def purge(self) -> None:
        chat_id = self.any().id
        del self.chats[chat_id]
        self.library.purge(chat_id)

    def project(self) -> None:
        key = self.dice.choice([*self.projects, f"p{self.number}x"])
        self.projects[key] = Project(key, f"Project {self.number}", NOON, documents=("d",))
        self.library.save_project(self.projects[key])

    def document(self) -> None:
        key, text = f"d{self.number}x", f"fog text-d{self.number}x"
        document = KeptDocument(key, f"name-{self.number}x", digest_of(text), len(text), NOON, NOON, {"f": 3})
        self.documents[key] = document, text
        self.library.documents.add(document, text)

    def rename_document(self) -> None:
        if self.documents:
            key, (document, text) = self.dice.choice(list(self.documents.items()))
            self.documents[key] = replace(document, name=f"name-{self.number}x"), text
            self.library.documents.change(self.documents[key][0])

    def purge_other(self) -> None:
        if self.documents and self.dice.random() < 0.5:
            key = self.dice.choice(list(self.documents))
            del self.documents[key]
            self.library.documents.purge(key)
        elif self.projects:
            key = self.dice.choice(list(self.projects))
            del self.projects[key]
            self.library.purge_project(key)

    # ---- events

    def flush(self) -> None:
        assert self.library.flush()
        assert self.library.waiting() == {}

    def reopen(self) -> None:
        assert self.library.close()
        self.library = Library(self.folder)
        assert (self.library.problem, self.library.notices) == (None, [])

    def crash(self) -> None:
        """The home as a killed process leaves it is opened, on a full disk at first."""
        self.flush()
        crashed = self.folder.with_name(f"{self.folder.name}x")
        shutil.copytree(self.folder, crashed)
        self.library.close()
        self.folder = crashed
        with full_disk():
            self.library = Library(self.folder)
            self.check()

    def full_disk(self) -> None:
        self.flush()
        with full_disk():
            for _ in range(3):
                self.step(self.dice.choice((*_WRITES[:3], "purge")))
            assert not self.library.flush()
            self.check()
        self.until_saved()

    def full_start(self) -> None:
        """What could not be saved is there in the next run; beside the database if that is possible."""
        assert self.library.close()
        with full_disk():
            self.library = Library(self.folder)
            self.check()
            self.ask()
            assert not self.library.flush()
        self.library.keep_beside()
        self.library.close()
        self.library = Library(self.folder)

    def until_saved(self) -> None:
        for _ in range(20):
            if self.library.flush():
                return
        raise AssertionError(self.library.failure)

    def second(self) -> None:
        """Another process reads what is saved, and saves nothing."""
        self.flush()
        other = Library(self.folder)
        assert other.elsewhere
        before = (self.folder / "chats.db").stat().st_ino
        assert [each.repair(incomplete=True) for each in (self.library, other)] == [
            "",
            "",
        ]  # nothing is damaged
        assert (self.folder / "chats.db").stat().st_ino == before
        self.check(other)
        for chat in self.chats.values():
            other.save(chat.renamed("Other"))
        assert not other.flush()
        assert not other.keep_beside()
        other.close()

    def back_up(self) -> None:
        self.any()
        self.flush()
        Backups(self.folder / "chats.db").make()

    def damage(self) -> None:
        """One row or page; every record is read from the backup, and a repair makes all whole."""
        self.back_up()
        assert self.library.close()
        path = self.folder / "chats.db"
        with sqlite3.connect(path) as connection:
            changed = connection.execute(harm := self.dice.choice(_HARM)).rowcount
        connection.close()
        before = path.read_bytes()
        self.library = Library(self.folder)
        self.check()
        if self.library.damaged:
            assert path.read_bytes() == before
            self.ask()
            self.library.repair()
            assert any(each.read_bytes() == before for each in self.folder.glob("chats-damaged*.db"))
        else:
            assert changed < 1, harm
        assert not self.library.damaged

    def lose(self) -> None:
        """The database is missing or empty: the backup has everything but unused chats."""
        self.back_up()
        assert self.library.close()
        (self.folder / "chats.db").unlink()
        if self.dice.random() < 0.5:
            (self.folder / "chats.db").write_bytes(b"")
        unused = [each.id for each in self.chats.values() if not each.turns]
        for chat_id in unused:
            del self.chats[chat_id]
        self.library = Library(self.folder)
        if self.chats or self.projects or self.documents:
            assert self.library.problem
            assert self.library.problem.remedy == "restore"
            self.library.restore()
        assert self.library.problem is None
        for chat_id in unused:
            self.library.purge(chat_id)


@pytest.fixture
def walk(tmp_path: Path, salvaged_in_process: None, request: pytest.FixtureRequest) -> Iterator[Walk]:
    """Whatever the umask, all files are private."""
    before = os.umask(0)
    try:
        walk = Walk(tmp_path / "home", random.Random(request.param))
        yield walk
        modes = {path.name: path.stat().st_mode & 0o077 for path in walk.folder.rglob("*")}
        walk.library.close()
    finally:
        os.umask(before)
    assert not any(modes.values()), modes


@pytest.mark.parametrize("walk", thinned(range(6), keep=(0, 1)), indirect=True)
def test_a_home_has_what_was_saved_whatever_happens(walk: Walk) -> None:
    for _ in range(_STEPS):
        walk.step(walk.dice.choice((*_WRITES, *_OTHERS, walk.dice.choice(_EVENTS))))
        walk.check()
    for event in _EVENTS:
        walk.step(event)
        walk.check()
        walk.step("ask")
    walk.step("reopen")
    walk.check()


def test_without_a_folder_all_lasts_for_the_run(tmp_path: Path) -> None:
    walk = Walk(tmp_path / "home", random.Random(1))
    walk.library.close()
    walk.library = Library(None)
    for _ in range(_STEPS):
        walk.step(walk.dice.choice((*_WRITES, *_OTHERS)))
        walk.check()
    assert walk.library.unsaved() == {}
    assert walk.library.close()
