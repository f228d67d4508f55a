"""The archive that lasts: two windows and a crash. Damage and copies are in test_recovery.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.session.chats.chats import Chats
from app.session.chats.projects import Project
from app.session.documents import KeptDocument
from app.store.chat_store import Job, Key
from app.store.library import Library
from tests.app.store.chats import NOON, chat_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def libraries(folder: Path) -> Iterator[list[Library]]:
    """Closed at the end, whatever happened."""
    opened: list[Library] = []
    yield opened
    for library in opened:
        library.close()


def opened(folder: Path, libraries: list[Library]) -> Library:
    libraries.append(Library(folder))
    return libraries[-1]


def test_what_is_written_while_it_is_listed_is_listed(
    folder: Path, libraries: list[Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened(folder, libraries)
    waiting = library.waiting

    def waiting_until_then() -> dict[Key, Job]:
        jobs = waiting()
        assert library.flush()
        return jobs

    monkeypatch.setattr(library, "waiting", waiting_until_then)
    library.save(chat_of(1))
    assert [each.id for each in library.summaries()] == ["c1"]
    library.save(chat_of(2, text="A ship comes in."))
    assert [each.chat_id for each in library.search("ship")] == ["c2"]
    project = Project("p1", "Harbour", NOON)
    library.save_project(project)
    assert library.projects() == [project]
    document = KeptDocument("d1", "Ships.md", "x", 16, NOON, NOON)
    library.documents.add(document, "A ship comes in.")
    assert library.documents.documents() == [document]
    library.documents.add(replace(document, id="d2"), "Every ship leaves.")
    # The passages are the same before and after, their order is not.
    before, after = library.documents.search("ship"), library.documents.search("ship")
    assert {hit.id: hit for hit in before} == {hit.id: hit for hit in after}
    assert {hit.id: hit.passage for hit in before} == {"d1": "A ship comes in.", "d2": "Every ship leaves."}


def test_a_value_that_cannot_be_stored_holds_up_no_other(folder: Path, libraries: list[Library]) -> None:
    library = opened(folder, libraries)
    library.save(replace(chat_of(2), context_used_tokens=2**70))
    library.save(chat_of(3, text="A ship comes in."))
    assert not library.flush()
    assert [each.chat_id for each in library.search("ship")] == ["c3"]
    assert not library.keep_beside()
    assert not library.close()
    again = opened(folder, libraries)
    assert not again.elsewhere
    assert [each.id for each in again.summaries()] == ["c3"]


def test_killed_in_mid_answer_keeps_what_was_autosaved(folder: Path, libraries: list[Library]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.app.store.streaming_child", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    shown = 0
    while shown < 3000:  # about a second and a half
        shown = int(child.stdout.readline())
    assert opened(folder, libraries).elsewhere
    libraries.pop().close()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    library = opened(folder, libraries)
    assert library.problem is None
    chats = Chats(archive=library, open_id="c")
    answer = chats.open.turn("t").answer
    # A quarter of a second of an answer is the most that a crash may cost; the child writes 10 in 5 ms.
    assert shown - 1500 < len(answer.tokens)
    assert len(answer.tokens) >= 10
    assert [token.position for token in answer.tokens] == list(range(len(answer.tokens)))
    assert answer.status == "cut_off"
    assert "closed before" in answer.note
