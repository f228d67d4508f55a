"""Projects in the chat database: they outlive runs and damage, and come back from a backup."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.session.chats.chats import Chats
from app.session.chats.projects import Project
from app.store.copies import Backups
from app.store.library import Library
from tests.app.store.chats import NOON, chat_of, ids, texts, times

projects = st.builds(
    Project,
    ids,
    texts,
    times,
    texts,
    texts,
    texts,
    st.lists(texts, max_size=3).map(tuple),
    st.booleans(),
    st.none() | times,
    st.booleans(),
)
PROJECT = Project("p", "Harbour", datetime(2026, 5, 4, tzinfo=UTC), "Be brief.", documents=("tides",))


@given(st.lists(projects, max_size=4, unique_by=lambda each: each.id))
def test_a_stored_project_is_read_as_it_was_written(given_projects: list[Project]) -> None:
    store = Library(None)
    for project in given_projects:
        store.save_project(replace(project, name="before"))
        store.save_project(project)
    assert {each.id: each for each in store.projects()} == {each.id: each for each in given_projects}
    for project in given_projects:
        store.purge_project(project.id)
    assert store.projects() == []
    store.close()


def test_projects_and_their_chats_are_there_in_the_next_run(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save_project(PROJECT)
    library.save_project(replace(PROJECT, id="gone"))
    library.purge_project("gone")
    library.save(chat_of(1).in_project("p"))
    assert library.close()
    again = Library(tmp_path)
    assert again.projects() == [PROJECT]
    assert {each.id: each.project for each in again.summaries()} == {"c1": "p"}
    assert again.load("c1") == chat_of(1).in_project("p")
    again.close()


@pytest.mark.parametrize("harm", ["UPDATE projects SET state = x'c1'", "UPDATE chats SET project = 'q'"])
def test_a_damaged_project_or_membership_is_read_from_a_backup(tmp_path: Path, harm: str) -> None:
    library = Library(tmp_path)
    library.save_project(PROJECT)
    library.save(chat_of(1).in_project("p"))
    assert library.close()
    Backups(tmp_path / "chats.db").make()
    with sqlite3.connect(tmp_path / "chats.db") as connection:
        connection.execute(harm)
    connection.close()
    library = Library(tmp_path)
    assert library.damaged
    assert library.projects() == [PROJECT]
    assert [each.project for each in library.summaries()] == ["p"]
    library.save_project(replace(PROJECT, id="new"))
    library.repair()
    assert {each.id for each in library.projects()} == {"p", "new"}
    assert library.load("c1") == chat_of(1).in_project("p")
    assert library.close()


def test_a_backup_restores_missing_chats_with_their_project(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save_project(PROJECT)
    library.save(chat_of(1).in_project("p"))
    library.save_project(replace(PROJECT, id="gone", deleted=NOON, with_chats=True))
    library.save(chat_of(2).in_project("gone"))  # deleted with its project
    assert library.close()
    Backups(tmp_path / "chats.db").make()
    (tmp_path / "chats.db").unlink()
    library = Library(tmp_path)
    library.restore()
    chats = Chats(library)
    assert [each.project for each in chats.in_project("p")] == ["p"]
    assert [each.id for each in chats.deleted()] == ["c2"]
    assert chats.projects.find("p") == PROJECT
    library.close()
