"""Projects in the real window: created, filled, used for new chats, moved to, deleted, restored, reopened."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu

from app.chat.intents import MoveToNewChat
from app.controls.sheets import Question
from app.features import projects
from app.features.projects import ProjectSheet
from app.launch.scenario import ask
from app.panels import strings as list_strings
from app.session.chats.presets import Override
from app.session.chats.projects import Project
from app.shell.window import MainWindow
from core.events import Attachment, LoadModel, ModelEntry, ModelList, ReadAhead
from tests.app.journeys.test_chats_kept import filled, titles
from tests.app.stage import (
    Stage,
    choose_in_sheet,
    click,
    drop,
    kill,
    last,
    outside_of_tasks,
    play,
    press,
    ready,
    sent,
    set_value,
    sheet,
    until,
)
from tests.app.store.chats import chat_of
from tests.core.documents.made import write_xlsx

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def project_sheet(window: MainWindow) -> ProjectSheet:
    return await sheet(window, ProjectSheet)


async def saved(window: MainWindow, dialog: ProjectSheet) -> None:
    await outside_of_tasks(dialog.save.click)
    await until(lambda: not window.findChildren(ProjectSheet))


async def answer(window: MainWindow, value: str) -> None:
    question = await sheet(window, Question)
    await click(question.answers[value] if value else question.cancel)


def only_project(window: MainWindow) -> Project:
    (project,) = window.controller.chats.projects.listed()
    return project


@pytest.mark.sweep
async def test_a_new_project_gives_its_settings_and_a_spreadsheet_to_new_chats(
    stage: Stage, tmp_path: Path
) -> None:
    path = write_xlsx(tmp_path / "Tides.xlsx", {"May": (("A1", "High water"), ("B1", 12.5))})

    window = await stage.ready(folder=tmp_path / "home")
    await press(window, Qt.Key.Key_N, CTRL | SHIFT)
    dialog = await project_sheet(window)
    assert not dialog.save.isEnabled()
    dialog.name.setText(" Harbour  master ")
    dialog.system_prompt.set_value("Be brief.")
    dialog.preset.set_value("Documents")
    await outside_of_tasks(dialog.add_button.click)
    await choose_in_sheet(dialog, path)
    await until(lambda: bool(dialog.documents))
    assert [box.text() for box in dialog.documents.values()] == ["Tides.xlsx"]
    await saved(window, dialog)
    project = only_project(window)
    assert project.name == "Harbour master"
    assert [each.name for each in window.controller.library.documents.listed()] == ["Tides.xlsx"]
    assert titles(window) == ["Projects", "Harbour master"]
    # Its first chat is open.
    assert window.views.header.title == "New chat in “Harbour master”"
    assert window.controller.chats.open.project == project.id
    assert [each.name for each in window.views.composer.attachments] == ["Tides.xlsx"]
    assert window.menu_actions["project_settings"].isEnabled()
    window.menu_actions["new_chat_in_project"].trigger()
    assert window.views.header.title == "New chat in “Harbour master”"
    assert [each.name for each in window.views.composer.attachments] == ["Tides.xlsx"]
    window.views.composer.set_text("write 3")
    await until(lambda: bool(window.controller.chats.open.draft.attachments))
    window = await stage.ready(folder=tmp_path / "home")
    # The unsent message and its project are still there.
    assert window.views.header.title == "New chat in “Harbour master”"
    window.controller.chat.start()
    window.projects.start_chat(only_project(window).id)
    assert len(window.views.composer.attachments) == 1
    assert window.views.composer.text == "write 3"
    assert window.views.inspector.settings.sampling.temperature == 0.0
    await click(window.views.composer.send_button)
    await until(lambda: bool(window.controller.chats.open.turns))
    await until(lambda: last(window).over)
    assert titles(window) == ["Projects", "Harbour master", "write 3"]
    asked = window.controller.chats.open.turns[0].user
    assert "High water" in asked.attachments[0].text
    override = Override("chat.system_prompt", "Be brief.")
    assert override in window.controller.chats.open.overrides


async def test_chats_are_moved_by_the_menus_and_back_by_undo(stage: Stage, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1), chat_of(2))

    window = await stage.ready(folder=tmp_path)
    sidebar, chats = window.views.sidebar, window.controller.chats
    sidebar.new_project_requested.emit("c1")
    dialog = await project_sheet(window)
    dialog.name.setText("Harbour & fog")
    await saved(window, dialog)
    project = only_project(window)
    assert chats.summary("c1").project == project.id
    assert window.views.notice_bar.text == "“Question 0 of chat 1” moved to “Harbour & fog”"
    await click(window.views.notice_bar.action_button)
    assert chats.in_project(project.id) == ()

    window.controller.chat.select("c2")
    window.menu_actions["move"].trigger()
    (menu,) = (each for each in sidebar.findChildren(QMenu) if each.isVisible())
    names = {each.text().replace("&&", "&"): each for each in menu.actions()}
    assert names[list_strings.NO_PROJECT].isChecked()
    await outside_of_tasks(lambda: menu.setActiveAction(names["Harbour & fog"]))
    await outside_of_tasks(lambda: menu.activeAction().activate(QAction.ActionEvent.Trigger))
    menu.close()
    assert [each.id for each in chats.in_project(project.id)] == ["c2"]
    sidebar.list.project_folded.emit(project.id, True)
    assert titles(window)[:3] == ["Projects", "Harbour & fog", titles(window)[2]]
    assert "Question 0 of chat 2" not in titles(window)
    row = sidebar.list.project(project.id)
    assert row.current
    sidebar.search.setText("chat 2")
    await until(lambda: titles(window) == ["1 chat found", "Question 0 of chat 2"])
    sidebar.search.clear()
    sidebar.list.project_renamed.emit(project.id, "Port")
    assert titles(window)[:2] == ["Projects", "Port"]
    branched = window.controller.chat.branch(chats.open.turns[0].id)
    assert branched.project == project.id


@pytest.mark.sweep
@pytest.mark.parametrize("choice", ["keep", "delete"])
def test_deleting_asks_what_becomes_of_the_chats_and_is_undone(
    qapp: QApplication, tmp_path: Path, choice: str
) -> None:
    filled(tmp_path, chat_of(1).in_project("gone"), chat_of(2))

    async def scene(window: MainWindow) -> None:
        await ready(window)
        controller, chats = window.controller, window.controller.chats
        project = chats.projects.add("Harbour")
        controller.chat.listing.move("c1", project.id)
        controller.chat.select("c1")
        for value in ("", choice):
            assert only_project(window) == project
            window.projects.delete(project.id)
            await answer(window, value)
        assert chats.projects.listed() == ()
        kept = {"c1", "c2"} if choice == "keep" else {"c2"}
        assert {each.id for each in chats.listed()} == kept
        assert chats.open.id == ("c1" if choice == "keep" else "c2")
        assert window.menu_actions["undo_delete"].isEnabled()
        notice = window.views.notice_bar
        if choice == "delete":
            await click(notice.action_button)
        else:
            notice.clear()  # as after some seconds
            controller.chat.listing.move("c2", chats.projects.add("Other").id)  # has an Undo of its own
            window.menu_actions["undo_delete"].trigger()
            assert not window.menu_actions["undo_delete"].isEnabled()
        assert chats.open.id == "c1"
        assert [each.id for each in chats.in_project(project.id)] == ["c1"]
        window.projects.delete(project.id)
        await answer(window, choice)

    async def again(window: MainWindow) -> None:
        await ready(window)
        chats = window.controller.chats
        assert [each.name for each in chats.projects.listed()] == (["Other"] if choice == "keep" else [])
        assert [each.id for each in chats.deleted()] == (["c1"] if choice == "delete" else [])
        if choice == "delete":
            window.controller.chat.listing.restore("c1")
            assert chats.open.id == "c1"
            assert chats.open.project == ""
        empty = chats.projects.add("Empty")
        window.projects.delete(empty.id)  # nothing to ask
        assert chats.projects.find(empty.id) is None
        assert window.views.notice_bar.text == "“Empty” deleted"

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


async def test_a_projects_model_is_loaded_or_offered_and_a_missing_one_is_named(
    stage: Stage, tmp_path: Path
) -> None:
    filled(tmp_path, chat_of(1))

    window = await stage.ready(folder=tmp_path)
    controller, models, notice = window.controller, window.controller.models, window.views.notice_bar
    loads = sent(window, LoadModel)
    entries = (
        ModelEntry("starter", "Fake 1M", "starter", "fake"),
        ModelEntry("hub/Other", "Other", "download", "other"),
    )
    project = controller.chats.projects.add("Harbour")
    controller.chats.change_project(replace(project, model="hub/Other"))
    window.projects.start_chat(project.id)
    controller.chat.start()
    models.on_list(ModelList("", "", entries, (), 0, 0))
    assert (loads, notice.text) == ([], ""), "its chat was left before the models were known"
    window.projects.edit(project.id)
    dialog = await project_sheet(window)
    dialog.model.set_value("hub/Other")
    await saved(window, dialog)
    controller.chat.listing.move("c1", project.id)
    window.views.sidebar.chat_selected.emit("c1")
    assert notice.text == projects.uses_model("Harbour", "Other")
    assert loads == []
    window.controller.chat.start()
    ask(window, "write 2000")
    window.views.sidebar.chat_selected.emit(controller.chats.open.id)
    assert notice.text == "", "this chat is in no project"
    await until(lambda: window.controller.link.busy)
    window.projects.start_chat(project.id)
    await click(notice.action_button)
    assert notice.text == projects.loads_next("Other")
    assert loads == []
    window.controller.asking.readiness.stop_running()
    await until(lambda: loads == [LoadModel("hub/Other")])
    await ready(window)
    controller.chats.change_project(replace(only_project(window), model="hub/Gone"))
    window.projects.start_chat(project.id)
    assert notice.text == projects.misses_model("Harbour", "hub/Gone")
    window.projects.edit(project.id)
    dialog = await project_sheet(window)
    assert dialog.model.currentText() == projects.not_installed("hub/Gone")
    dialog.reject()
    controller.chats.change_project(replace(only_project(window), model="starter"))
    await kill(window)
    window.projects.start_chat(project.id)
    await click(notice.action_button)
    assert notice.text == projects.NO_WORKER


async def test_renamed_presets_and_messages_that_are_too_long_stay_with_the_project(
    window: MainWindow,
) -> None:
    chats, presets = window.controller.chats, window.controller.chat.settings.presets
    set_value(window, "sampling.temperature", 0.3)
    presets.save("Mine")
    project = chats.projects.add("Harbour")
    chats.change_project(replace(project, preset="Mine"))
    presets.rename("Mine", "Ours")
    assert only_project(window).preset == "Ours"
    window.projects.start_chat(project.id)
    assert chats.open.preset == "Ours"
    presets.delete("Ours")
    assert only_project(window).preset == ""

    window.controller.chat.start()
    chats, composer = window.controller.chats, window.views.composer
    project = chats.projects.add("Harbour")
    window.projects.start_chat(project.id)
    ask(window, "write 2")
    await until(lambda: last(window).over)
    asked = chats.open.id
    window.projects.start_chat(project.id)
    composer.set_text("Begun.")
    window.controller.chat.select(asked)
    composer.set_text("Too long.")
    composer.intent.emit(MoveToNewChat())
    assert chats.open.project == project.id
    assert composer.text == "Begun.\n\nToo long."
    window.controller.chat.select(asked)
    assert composer.text == ""


async def test_documents_of_the_library_are_checked_in_the_sheet(window: MainWindow, tmp_path: Path) -> None:
    library, chats = window.controller.library, window.controller.chats
    kept = [library.keep_quietly(Attachment(name, name * 30)) for name in ("Fog.md", "Ice.md", "Tea.md")]
    project = chats.projects.add("Harbour")
    chats.change_project(replace(project, documents=(kept[0], "removed long ago")))
    window.projects.edit(project.id)
    dialog = await project_sheet(window)
    assert [box.isChecked() for box in dialog.documents.values()] == [True, False, False]
    dialog.documents[kept[0]].setChecked(False)
    dialog.documents[kept[2]].setChecked(True)
    (tmp_path / "Oil.md").write_text("Oil", "utf-8")
    dialog.add_files([tmp_path, Path("/nowhere/at all.txt")])
    assert not dialog.save.isEnabled()
    await until(dialog.save.isEnabled)
    assert "at all.txt" in dialog.note.text()
    *_, added = dialog.documents.values()
    assert (added.whole, added.isChecked()) == ("Oil.md", True)
    added.setChecked(False)
    await saved(window, dialog)
    assert only_project(window).documents == (kept[2],)
    ask(window, "write 2")
    await until(lambda: last(window).over)
    commands = sent(window, ReadAhead)
    window.projects.start_chat(project.id)
    assert [each.name for each in window.views.composer.attachments] == ["Tea.md"]
    await until(lambda: bool(commands))
    message = commands[-1].question.messages[-1]
    assert [each.name for each in message.attachments] == ["Tea.md"], "read before a word was typed"
    library.documents.remove(kept[2])
    window.views.composer.clear()
    window.projects.start_chat(project.id)
    assert window.views.composer.attachments == ()
    notice = window.views.notice_bar
    assert notice.text == projects.missing_text(1)
    await click(notice.action_button)
    dialog = await project_sheet(window)
    assert dialog.note.text() == projects.missing_text(1)
    await saved(window, dialog)
    notice.clear()
    window.projects.start_chat(project.id)
    assert notice.text == ""


@pytest.mark.sweep
async def test_an_added_file_is_listed_once_and_replaces_the_one_of_its_name(
    window: MainWindow, tmp_path: Path
) -> None:
    library, chats = window.controller.library, window.controller.chats
    old = library.keep_quietly(Attachment("Tides.txt", "Tides.txt of May."))
    library.keep_quietly(Attachment("Fog.txt", "Fog.txt of May."))
    project = chats.projects.add("Harbour")
    chats.change_project(replace(project, documents=(old,)))
    window.projects.edit(project.id)
    dialog = await project_sheet(window)
    (tmp_path / "Tides.txt").write_text("Tides.txt of June.")
    (tmp_path / "Copy.txt").write_text("Fog.txt of May.")
    paths = [tmp_path / "Tides.txt", tmp_path / "Copy.txt", tmp_path / "missing.txt", tmp_path / "Tides.txt"]
    drop(dialog, *paths)
    await until(dialog.save.isEnabled)
    shown = {
        box.text(): box.isChecked() for box in dialog.documents.values() if box is not dialog.documents[old]
    }
    assert shown == {"Tides.txt": True, "Fog.txt": True}
    assert not dialog.documents[old].isChecked()
    assert projects.replaced_text("Tides.txt") in dialog.note.text()
    assert "missing.txt" in dialog.note.text(), "an earlier failure is still told"
    await saved(window, dialog)
    texts = [library.documents.text(each) for each in only_project(window).documents]
    assert texts == ["Tides.txt of June.", "Fog.txt of May."]
    assert library.documents.text(old) == "Tides.txt of May."


@pytest.mark.sweep
@pytest.mark.parametrize("is_open", [True, False])
async def test_the_message_of_a_new_chat_follows_its_project(window: MainWindow, is_open: bool) -> None:
    chat, chats = window.controller.chat, window.controller.chats
    composer, header = window.views.composer, window.views.header
    ask(window, "write 2")
    await until(lambda: last(window).over)
    asked = chats.open.id
    library = window.controller.library
    fog, ice = (library.keep_quietly(Attachment(name, name * 30)) for name in ("Fog.md", "Ice.md"))
    project = chats.projects.add("Harbour")
    chats.change_project(replace(project, documents=(fog,)))
    window.projects.start_chat(project.id)
    composer.attach(Attachment("Mine.md", "Mine."))
    composer.set_text("Why?")
    if not is_open:
        chat.select(asked)
    window.projects.edit(project.id)
    dialog = await project_sheet(window)
    dialog.name.setText("Port")
    dialog.documents[fog].setChecked(False)
    dialog.documents[ice].setChecked(True)
    await saved(window, dialog)
    if not is_open:
        window.projects.start_chat(project.id)
    assert header.title == "New chat in “Port”"
    assert [each.name for each in composer.attachments] == ["Mine.md", "Ice.md"]
    assert composer.text == "Why?"
    window.views.sidebar.list.project_renamed.emit(project.id, "Pier")
    assert header.title == "New chat in “Pier”"
    if not is_open:
        chat.select(asked)
    window.projects.delete(project.id)
    if not is_open:
        chat.start()
    assert header.title == "New chat"
    assert [each.name for each in composer.attachments] == ["Mine.md"]
    assert composer.text == "Why?"
    if is_open:
        await click(window.views.notice_bar.action_button)
        assert header.title == "New chat in “Pier”"
