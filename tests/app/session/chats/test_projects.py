"""Projects: new chats in them, moving, deleting with and without chats, restoring."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from app.session.chats.chats import KEPT_DELETED, Chats
from app.session.chats.presets import Override, Preset
from app.store.library import Library
from core.events import Attachment, Message

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
PRESETS = {"": None, "Facts": Preset("Facts", (Override("chat.system_prompt", "Facts only."),))}


class Clock:
    now = NOON

    def __call__(self) -> datetime:
        return self.now


def chats_over(archive: Library, clock: Clock | None = None) -> Chats:
    return Chats(archive, clock or Clock(), find_preset=PRESETS.get)


def ask(chats: Chats, text: str) -> str:
    chats.keep(chats.open.ask(chats.new_turn_id(), Message("user", text)))
    return chats.open.id


def test_a_new_chat_starts_with_the_settings_of_its_project(archive: Library) -> None:
    chats = chats_over(archive)
    outside = chats.open.id
    project = chats.projects.add("  Harbour\n master ")
    assert project.name == "Harbour master"
    chats.change_project(replace(project, preset="Facts", system_prompt="Be brief."))
    chat = chats.start(project.id)
    assert (chat.project, chat.preset) == (project.id, "Facts")
    assert chat.overrides == (Override("chat.system_prompt", "Be brief."),)
    # The unused chat of the project and the one outside are two.
    assert chats.start().id == outside
    assert chats.start(project.id).id == chat.id
    # An unused chat gets changed settings of its project, one with a question keeps its own.
    chats.change_project(replace(project, system_prompt="Be long."))
    assert chats.open.overrides == (Override("chat.system_prompt", "Be long."),)
    ask(chats, "One")
    chats.change_project(replace(project, preset="Facts"))
    assert chats.get(chat.id).overrides == (Override("chat.system_prompt", "Be long."),)
    branched = chats.branch(chats.open.turns[0].id)
    assert branched.project == project.id
    assert {each.id for each in chats.in_project(project.id)} == {chat.id, branched.id}
    assert chats.start("unknown").project == ""


@pytest.mark.parametrize("with_chats", [False, True])
def test_a_deleted_project_keeps_or_takes_its_chats_and_comes_back(
    archive: Library, with_chats: bool
) -> None:
    clock = Clock()
    chats = chats_over(archive, clock)
    other = ask(chats, "Outside")
    project = chats.projects.add("Harbour")
    chats.start(project.id)
    inside = ask(chats, "Inside")
    chats.select(other)
    chats.projects.delete(project.id, with_chats=with_chats)
    chats = chats_over(archive, clock)  # the next start
    assert chats.projects.listed() == ()
    assert {each.id for each in chats.listed()} == ({other} if with_chats else {other, inside})
    assert [each.id for each in chats.deleted()] == ([inside] if with_chats else [])
    assert [hit.chat_id for hit in chats.search("Inside")] == ([] if with_chats else [inside])
    chats.projects.restore(project.id)
    assert [each.id for each in chats.in_project(project.id)] == [inside]
    assert chats.deleted() == ()

    chats.projects.delete(project.id, with_chats=with_chats)
    if with_chats:
        chats.restore(inside)  # alone, from Recently Deleted
        assert chats.get(inside).project == ""
        assert {each.id for each in chats.listed()} == {other, inside}
        chats.keep(chats.get(inside).in_project(project.id))
    clock.now += KEPT_DELETED + timedelta(seconds=1)
    chats.purge_old()
    assert archive.projects() == []
    assert {each.id for each in archive.summaries() if each.turns} == (
        {other} if with_chats else {other, inside}
    )


def test_a_chat_moves_in_and_out_and_an_unknown_project_is_none(archive: Library) -> None:
    chats = chats_over(archive)
    moved = ask(chats, "One")
    project = chats.projects.add("Harbour")
    chats.keep(chats.get(moved).in_project(project.id))
    assert [each.project for each in chats.listed()] == [project.id]
    chats.keep(chats.get(moved).in_project(""))
    assert chats.in_project(project.id) == ()
    imported = replace(chats.get(moved), id="elsewhere").in_project("of another home")
    assert chats.add(imported)[0].project == ""
    chats.projects.rename(project.id, " ")
    chats.projects.rename(project.id, "Port")
    assert [each.name for each in chats.projects.listed()] == ["Port"]
    chats.change_project(replace(project, preset="Facts"))
    chats.projects.rename_preset("Facts", "Truths")
    assert chats.projects.listed()[0].preset == "Truths"


def test_the_draft_of_a_deleted_project_is_joined_to_the_one_outside(archive: Library) -> None:
    tides = Attachment("Tides.md", "High water at noon.")
    chats = chats_over(archive)
    chats.keep(chats.open.with_draft(Message("user", "Outside", (tides,))))
    project = chats.projects.add("Harbour")
    inside = chats.start(project.id).with_draft(Message("user", "Inside", (tides,)))
    chats.keep(inside)
    chats.projects.delete(project.id, with_chats=False)
    chats = chats_over(archive)  # the next start
    assert sorted(chats.open.draft.content.split("\n\n")) == ["Inside", "Outside"]
    assert chats.open.draft.attachments == (tides,)
    assert chats.start() == chats.open
    assert len(archive.summaries()) == 1


def test_a_document_taken_from_a_project_leaves_its_unused_chat_unless_that_is_open(archive: Library) -> None:
    chats = chats_over(archive)
    project = chats.projects.add("Harbour")
    unused = chats.start(project.id)
    both = (Attachment("a", "alpha"), Attachment("b", "beta"))
    chats.keep(unused.with_draft(replace(unused.draft, attachments=both)))
    chats.remove_from_drafts(project.id, lambda each: each.text == "beta")
    assert chats.open.draft.attachments == both
    chats.start()
    chats.remove_from_drafts(project.id, lambda each: each.text == "beta")
    assert chats.get(unused.id).draft.attachments == both[:1]


def test_projects_are_sorted_as_people_sort(archive: Library) -> None:
    projects = chats_over(archive).projects
    names = ["apple", "Ärzte", "Chapter 9", "chapter 10", "Zoo"]
    for name in reversed(names):
        projects.add(name)
    assert [each.name for each in projects.listed()] == names
