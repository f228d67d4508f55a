"""Which images stay: those that a chat, a waiting change or a backup refers to, and no others."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation, QueuedMessage
from app.session.images import hashes_of
from app.store.chat_store import ChatStore
from app.store.copies import Backups
from app.store.images import ImageFolder
from app.store.library import Library
from core.errors import RequestError
from core.events import Image, Message
from tests.app.store.disk import full_disk
from tests.app.store.test_images import picture
from tests.thinned import thinned

_STEPS = 40
_COLOURS = [(200, 30 * number, 90) for number in range(6)]
_DELETIONS = ("delete", "restore", "purge", "delete message", "undo")
_WRITES = ("keep", "draft", "clear", "queue", "ask", "again", "show", *_DELETIONS)
_EVENTS = ("flush", "back up", "reopen", "crash", "leave", "full disk")


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    end_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end_s, what()
        time.sleep(0.01)


def on_disk(images: ImageFolder) -> set[str]:
    """The names of the files without the thumbnails of images that are among them."""
    names = set(os.listdir(images.folder)) if images.folder.is_dir() else set()
    return names - {f"{name}.png" for name in names}


class Walk:
    """Chats with images in a folder, and what the last deletion of a message was."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.folder, self.dice, self.number, self.is_full = folder, dice, 0, False
        self.deletion: tuple[Conversation, str] | None = None
        self.open()

    def open(self) -> None:
        self.library = Library(self.folder)
        self.chats, self.deletion = Chats(self.library), None
        self.kept: list[Image] = []

    def step(self, what: str) -> None:
        self.number += 1
        getattr(self, what.replace(" ", "_"))()

    @property
    def all(self) -> list[Conversation]:
        return [self.chats.get(each.id) for each in self.library.summaries()]

    def referred(self) -> set[str]:
        return set[str]().union(*(hashes_of(chat) for chat in (*self.all, self.chats.open)))

    def in_copies(self) -> set[str]:
        found = set[str]()
        for path in Backups(self.folder / "chats.db").paths():
            with ChatStore(path, read_only=True) as store:
                found |= store.image_hashes()
        return found

    def check(self) -> None:
        """What is referred to is there, with a path at which it is."""
        for chat in self.all:
            for message in (*(each.user for turn in chat.turns for each in turn.versions), chat.draft):
                for image in message.images:
                    assert image.path == str(self.library.images.path(image.hash))
                    assert self.library.images.is_kept(image.hash)

    def check_exactly(self) -> None:
        """After a start there is nothing else, once something was saved."""
        self.library.save(replace(self.chats.open, name=f"name {self.number}"))
        assert self.library.flush()
        images = self.library.images
        until(
            lambda: on_disk(images) == self.referred() | self.in_copies(),
            lambda: (on_disk(images), self.referred(), self.in_copies()),
        )

    # ---- steps

    def keep(self) -> None:
        image = self.library.images.keep(picture(self.dice.choice(_COLOURS)), f"p{self.number}.png")
        self.kept.append(image)

    def message(self) -> Message:
        """With images of the open chat, as an edited question has them, or new ones, as chips are."""
        there = self.library.images.unsaved | hashes_of(self.chats.open)
        self.kept = [each for each in self.kept if each.hash in there]
        if not self.kept and not self.is_full:
            self.keep()
        images = self.dice.sample(self.kept, self.dice.randint(0, min(2, len(self.kept))))
        return Message("user", f"question {self.number}", images=tuple(images))

    def draft(self) -> None:
        self.chats.keep(self.chats.open.with_draft(self.message()))

    def clear(self) -> None:
        self.chats.keep(self.chats.open.with_draft(Message("user", "")))

    def queue(self) -> None:
        chat = self.chats.open
        queued = () if chat.queued else (QueuedMessage(self.message()),)
        self.chats.keep(chat.with_queued(queued))

    def ask(self) -> None:
        if self.dice.random() < 0.3:
            self.chats.start()
        chat = self.chats.open.settled("")
        self.chats.keep(chat.ask(f"t{self.number}", self.message()).settled(""))

    def again(self) -> None:
        if self.chats.open.turns:
            again = self.chats.open.ask_again(f"t{self.number}", self.message())
            self.chats.keep(again.settled(""))

    def show(self) -> None:
        chat = self.chats.open
        if chat.turns:
            turn = self.dice.choice(chat.turns)
            self.chats.keep(chat.show_version(turn.id, self.dice.randrange(len(turn.versions))))

    def another(self, *, deleted: bool) -> str:
        found = [each.id for each in (self.chats.deleted() if deleted else self.chats.listed())]
        found = [each for each in found if each != self.chats.open.id]
        return self.dice.choice(found) if found else ""

    def delete(self) -> None:
        if chat_id := self.another(deleted=False):
            self.chats.delete(chat_id)

    def restore(self) -> None:
        if chat_id := self.another(deleted=True):
            self.chats.restore(chat_id)

    def purge(self) -> None:
        if chat_id := self.another(deleted=True) or self.another(deleted=False):
            images = hashes_of(self.chats.get(chat_id))
            self.chats.purge(chat_id)
            assert self.library.flush()
            left = self.referred() | self.in_copies() | {each.hash for each in self.kept}
            assert not on_disk(self.library.images) & images - left

    def delete_message(self) -> None:
        before = self.chats.open
        if before.turns:
            turn = self.dice.choice(before.turns)
            self.chats.delete_turn(turn.id)
            self.deletion = before, turn.id

    def undo(self) -> None:
        """At once, or after the image was erased."""
        if self.deletion is None or self.deletion[0].id != self.chats.open.id:
            self.delete_message()
        if self.deletion and self.deletion[0].id == self.chats.open.id:
            if self.dice.random() < 0.7:
                assert self.library.flush()
            before, turn_id = self.deletion
            if not self.chats.open.has(turn_id):
                self.chats.keep(self.chats.open.with_turn_of(before, turn_id))
        self.deletion = None

    def flush(self) -> None:
        assert self.library.flush()

    def back_up(self) -> None:
        self.flush()
        Backups(self.folder / "chats.db").make()

    def reopen(self) -> None:
        assert self.library.close()
        self.open()
        self.check_exactly()

    def crash(self) -> None:
        """The files as a killed process leaves them, one that was being kept included."""
        self.keep()
        self.flush()
        crashed = self.folder.with_name(f"{self.folder.name}x")
        shutil.copytree(self.folder, crashed)
        (crashed / "images" / ".abc.tmp").write_bytes(b"half")
        self.library.close()
        self.folder = crashed
        self.open()
        self.check_exactly()

    def leave(self) -> None:
        self.chats.start()

    def full_disk(self) -> None:
        self.flush()
        with full_disk():
            with pytest.raises(RequestError, match="cannot be added"):
                self.keep()
            self.is_full = True
            for _ in range(3):
                self.step(self.dice.choice(("draft", "ask", "delete message", "delete")))
            self.is_full = False
        until(self.library.flush, lambda: self.library.failure)


@pytest.fixture
def walk(tmp_path: Path, images_in_process: None, request: pytest.FixtureRequest) -> Iterator[Walk]:
    walk = Walk(tmp_path / "home", random.Random(request.param))
    yield walk
    walk.library.close()


@pytest.mark.parametrize("walk", thinned(range(12), keep=(0, 1)), indirect=True)
def test_the_files_that_chats_and_backups_refer_to_are_there_and_no_others(walk: Walk) -> None:
    for _ in range(_STEPS):
        walk.step(walk.dice.choice((*_WRITES, walk.dice.choice(_EVENTS))))
        walk.check()
    for event in _EVENTS:
        walk.step(event)
        walk.check()
        walk.step("ask")
    walk.step("reopen")


@pytest.fixture
def library(tmp_path: Path, images_in_process: None, salvaged_in_process: None) -> Iterator[Library]:
    library = Library(tmp_path / "home")
    yield library
    library.close()


def asked(library: Library, *images: Image, id: str = "c") -> Conversation:
    chat = Chats(library).open
    return replace(chat, id=id).ask(f"t-{id}", Message("user", "What?", images=images)).settled("")


def test_a_chat_that_only_a_backup_has_is_restored_with_its_image(library: Library, tmp_path: Path) -> None:
    image = library.images.keep(picture(_COLOURS[0]), "a.png")
    library.save(asked(library, image))
    assert library.flush()
    database = tmp_path / "home" / "chats.db"
    Backups(database).make()
    assert library.close()
    database.unlink()
    again = Library(tmp_path / "home")
    try:
        again.save(asked(again, id="other"))
        assert again.flush()
        until(lambda: again.swept, lambda: "no sweep")
        again.restore()
        assert again.flush()
        loaded = again.load("c").turns[0].user.images
        assert [each.hash for each in loaded] == [image.hash]
        assert Path(loaded[0].path).read_bytes() == picture(_COLOURS[0])
    finally:
        again.close()


@pytest.mark.parametrize("harm", ["UPDATE images SET hash = replace(hash, 'a', 'b')", "DROP TABLE images"])
def test_a_damaged_list_of_references_erases_nothing(library: Library, tmp_path: Path, harm: str) -> None:
    image = library.images.keep(picture(_COLOURS[0]), "a.png")
    library.save(asked(library, image))
    assert library.flush()
    assert library.close()
    with sqlite3.connect(tmp_path / "home" / "chats.db") as connection:
        connection.execute(harm)
    connection.close()
    again = Library(tmp_path / "home")
    try:
        again.save(asked(again, id="other"))
        again.flush()
        until(lambda: again.failure is not None or again.swept, lambda: "neither damage nor sweep")
        assert again.images.is_kept(image.hash)
        again.take_damage(again.failure or RuntimeError())
        again.repair()
        assert again.flush()
        again.purge("other")
        assert again.flush()
        assert [each.hash for each in again.load("c").turns[0].user.images] == [image.hash]
        assert again.images.is_kept(image.hash)
    finally:
        again.close()


def test_an_image_that_cannot_be_erased_is_told_and_erased_later(library: Library) -> None:
    image = library.images.keep(picture(_COLOURS[0]), "a.png")
    library.save(asked(library, image))
    assert library.flush()
    path = Path(image.path)
    path.unlink()
    path.mkdir()  # what no file system lets `unlink` remove
    library.purge("c")
    assert not library.flush()
    assert library.failure
    path.rmdir()
    until(library.flush, lambda: library.failure)
    assert on_disk(library.images) == set()
