"""Documents in the real window: a folder attached, one kept, found, attached to another chat, removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QMessageBox

from app.features.library import LibraryWindow
from app.shell.window import MainWindow
from app.store.library import Library
from core.events import Attachment, CountTokens, Message
from core.settings import Settings, assign
from core.worker.client import worker_command
from tests.app.stage import (
    Stage,
    answer_view,
    choose_in_sheet,
    click,
    drop,
    last,
    outside_of_tasks,
    press,
    ready,
    sent,
    sheet,
    until,
)
from tests.core.documents.made import paragraph, pdf_of, write_docx

CTRL, SHIFT, NONE = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.NoModifier,
)
KEY = Qt.Key
TIDES = "High water at noon.\n\nLow water at six." * 40
FOG = "In fog nobody leaves the harbour." * 40


def library_of(window: MainWindow) -> LibraryWindow:
    return window.windows.find("library")


def names(window: MainWindow) -> list[str]:
    return [row.name for row in library_of(window).list.rows]


async def keep(window: MainWindow, name: str, text: str) -> None:
    composer = window.views.composer
    composer.attach(Attachment(name, text))
    chip = composer.chips.chips[-1]
    await until(lambda: chip.tokens is not None)
    chip.setFocus()
    await press(window, KEY.Key_Space)
    document = window.views.document
    assert document.view.text == text
    await click(document.keep_button)
    assert window.views.notice_bar.text == f"“{name}” is kept in the library"
    chip.setFocus()
    await press(window, KEY.Key_Delete)
    assert not composer.attachments


@pytest.mark.sweep
async def test_a_kept_document_is_there_in_the_next_run_and_is_not_counted_again(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    await keep(window, "Tides.md", TIDES)
    await keep(window, "Fog.md", FOG)
    await click(window.views.notice_bar.action_button)
    assert names(window) == ["Fog.md", "Tides.md"]
    # The same text is kept once.
    window.controller.library.keep(Attachment("Copy.md", FOG))
    assert window.views.notice_bar.text == "This text is in the library already, as “Fog.md”"
    assert names(window) == ["Fog.md", "Tides.md"]
    window = await stage.ready(folder=tmp_path)
    asked = sent(window, CountTokens)
    await press(window, KEY.Key_D, CTRL | SHIFT)
    library = library_of(window)
    assert names(window) == ["Fog.md", "Tides.md"]
    assert all("about" not in row.tokens for row in library.list.rows)
    assert library.preview.text_view.toPlainText() == FOG
    # Found by its words, attached by Return, and the keyboard is in the message.
    library.search.setFocus()
    for letter in "LOW":
        await press(library, KEY(ord(letter)))
    await until(lambda: names(window) == ["Tides.md"])
    assert library.list.rows[0].marks
    await press(library, KEY.Key_Down)
    assert library.list.hasFocus()
    assert library.preview.title.text() == "Tides.md"
    await press(library, KEY.Key_Return)
    composer = window.views.composer
    assert [each.name for each in composer.attachments] == ["Tides.md"]
    assert composer.attachments[0].tokens > 0
    composer.set_text("When is high water?")
    await until(lambda: composer.pill.used_tokens > composer.attachments[0].tokens)
    await until(lambda: "When is high water?" in [command.text for command in asked])
    assert TIDES not in [command.text for command in asked]
    # Twice is once.
    library.list.opened.emit(library.list.selected)
    assert len(composer.attachments) == 1
    assert window.views.notice_bar.text == "“Tides.md” is attached already"
    window.controller.asking.submit(composer.message())
    await ready(window)
    assert window.controller.chats.open.turns[-1].user.attachments[0].text == TIDES
    await press(library, KEY.Key_Escape)
    assert not library.isVisible()


async def test_a_count_of_another_model_is_not_kept(window: MainWindow) -> None:
    await ready(window)
    controller, composer = window.controller, window.views.composer
    controller.asking.submit(Message("user", "write 2", (Attachment("Tides.md", TIDES, 99_999),)))
    await until(lambda: last(window).over)
    controller.library.keep(controller.chats.open.turns[0].user.attachments[0])
    controller.chat.start()
    controller.library.attach(controller.library.documents.listed()[0].id)
    (chip,) = composer.chips.chips
    await until(lambda: chip.tokens is not None)
    assert chip.tokens < 1_000
    assert list(controller.library.documents.listed()[0].counts.values()) == [chip.tokens]


@pytest.mark.sweep
async def test_files_and_folders_are_added_given_up_or_refused(window: MainWindow, tmp_path: Path) -> None:
    window.windows.show("library")
    library = library_of(window)
    assert library.list.accessibleDescription().startswith("No Documents. ")
    (tmp_path / "Tides.md").write_text(TIDES, "utf-8")
    await click(library.add)
    await choose_in_sheet(library, tmp_path / "Tides.md")
    await until(lambda: names(window) == ["Tides.md"])
    assert not library.list.accessibleDescription()

    # Added during a search it is listed if it has the words. Chinese has a token for each character.
    (tmp_path / "潮.md").write_text("潮" * 500, "utf-8")
    library.search.setText("潮")
    await until(lambda: names(window) == [])
    drop(library, tmp_path / "潮.md")
    await until(lambda: names(window) == ["潮.md"])
    assert library.list.rows[0].tokens == "~500"
    await click(library.remove)
    library.search.clear()

    # A folder, a picture and a missing file together: what can be read is kept, the others are named.
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "Fog.md").write_text(FOG, "utf-8")
    (tmp_path / "more" / "boat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    drop(library, tmp_path / "more", tmp_path / "gone.txt")
    await until(lambda: library.preview.title.text() == "2 files were not added")
    assert [name.rpartition("/")[2] for name in names(window)] == ["Fog.md", "Tides.md"]
    assert "boat.png" in library.preview.text_view.toPlainText()
    assert "gone.txt" in library.preview.text_view.toPlainText()

    library.close()
    window.activateWindow()
    folder, empty = tmp_path / "many", tmp_path / "empty"
    folder.mkdir()
    empty.mkdir()
    for number in range(60):
        (folder / f"{number}.pdf").write_bytes(pdf_of([f"Page {number}"]))
    composer, banner = window.views.composer, window.views.banner
    await press(window, KEY.Key_O, CTRL | SHIFT)
    await choose_in_sheet(window, folder)
    (chip,) = composer.chips.files
    await until(lambda: " of 60" in chip.note)  # a busy window shows not every one
    await click(chip.remove_button)
    assert not composer.chips.files
    assert not composer.attachments
    composer.attach_files([empty])
    await until(lambda: banner.trouble is not None)
    assert banner.trouble.title == "The folder “empty” contains no readable files."
    assert banner.trouble.text == "The folder is empty. Choose another folder, or files."
    # A document of an old chat is kept from its tab.
    window.controller.asking.submit(Message("user", "write 2", (Attachment("Tides.md", TIDES),)))
    await ready(window)
    window.commands.show_document()
    await click(window.views.document.keep_button)
    window.windows.show("library")
    assert len(names(window)) == 2, "the same text is kept once"


async def test_renaming_removing_and_taking_it_back(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    for name, text in (("Tides.md", TIDES), ("Fog.md", FOG), ("Ice.md", "Thin ice.")):
        window.controller.library.keep(Attachment(name, text))
    window.windows.show("library")
    library = library_of(window)
    assert names(window) == ["Ice.md", "Fog.md", "Tides.md"]
    await click(library.rename)
    editor = library.list.findChild(QLineEdit)
    editor.setText("Winter")
    await press(library, KEY.Key_Return)
    assert names(window) == ["Winter", "Fog.md", "Tides.md"]
    assert library.preview.title.text() == "Winter"
    assert not window.views.composer.attachments  # Return ended the editing
    library.list.setFocus()
    await press(library, KEY.Key_Delete)
    assert names(window) == ["Fog.md", "Tides.md"]
    assert library.notice.text == "“Winter” removed"
    assert library.preview.title.text() == "Fog.md"
    await click(library.remove)
    assert names(window) == ["Tides.md"]
    # Minimised is not closed, and what is added again is not removed any more.
    library.showMinimized()
    await outside_of_tasks(QApplication.processEvents)
    library.showNormal()
    assert library.notice.text == "“Fog.md” removed"
    window.controller.library.keep(Attachment("Fog.md", FOG))
    assert library.notice.text == "“Winter” removed"
    await outside_of_tasks(lambda: library.list.select(window.controller.library.documents.of_text(FOG).id))
    await click(library.remove)
    await click(library.notice.action_button)
    await click(library.notice.action_button)
    assert names(window) == ["Fog.md", "Winter", "Tides.md"]
    assert library.notice.isHidden()
    await click(library.remove)
    library.close()
    window.windows.show("library")
    assert names(window) == ["Fog.md", "Tides.md"]
    library.search.setText("nowhere")
    await until(lambda: names(window) == [])
    assert library.list.empty == ("No document has these words", "")
    assert library.preview.isHidden()
    assert not library.attach.isEnabled()
    await stage.close()
    kept = Library(tmp_path)
    assert sorted(each.name for each in kept.documents.documents()) == ["Fog.md", "Tides.md"]
    kept.close()


@pytest.mark.sweep
async def test_a_folder_is_attached_what_was_skipped_is_told_and_many_chips_scroll(
    stage: Stage, tmp_path: Path
) -> None:
    folder = tmp_path / "harbour"
    (folder / "rules").mkdir(parents=True)
    (folder / "2 tides.md").write_text(TIDES)
    (folder / "10 fog.txt").write_text(FOG)
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / ".secret").write_text("x")
    (folder / "rules" / "berths.pdf").write_bytes(pdf_of(["North quay"]))
    write_docx(folder / "rules" / "calls.docx", paragraph("Channel 16"))

    window = await stage.open()
    composer, notice = window.views.composer, window.views.notice_bar
    await ready(window)
    menu = composer.attach_menu()
    assert [action.text() for action in menu.actions()] == [*("Files…", "Folder…", "From Library…")]
    menu.actions()[1].trigger()
    menu.deleteLater()
    await choose_in_sheet(window, folder)
    composer.set_text("What holds?")
    assert not composer.send_button.isEnabled()  # not before it is all there
    await until(lambda: len(composer.attachments) == 4)
    assert [each.name for each in composer.attachments] == [
        "2 tides.md",
        "10 fog.txt",
        "rules/berths.pdf",
        "rules/calls.docx",
    ]
    assert composer.attachments[2].text.strip() == "North quay"
    assert notice.text == "Attached 4 files of “harbour”, 2 skipped"
    await click(notice.action_button)
    box = await sheet(window, QMessageBox)
    assert box.detailedText() == ".secret: hidden\npicture.png: “picture.png” is a picture"
    await outside_of_tasks(box.reject)
    menu = composer.attach_menu()
    menu.actions()[2].trigger()
    menu.deleteLater()
    assert library_of(window).isVisible()

    library_of(window).close()
    window.activateWindow()
    await until(window.isActiveWindow)
    composer.clear()
    for number in range(30):
        composer.attach(Attachment(f"Rule {number}", f"Rule {number} holds."))
    shelf = composer.chips
    await until(lambda: shelf.horizontalScrollBar().maximum() > 0)
    assert composer.height() < 200
    end = composer.chips.chips[-1]
    end.setFocus()
    place = end.mapTo(shelf.viewport(), end.rect().center())
    assert shelf.viewport().rect().contains(place)
    # Whatever the window and the texts, there is room to write.
    window.resize(1024, 700)
    window.app_settings.set("look.zoom_pct", 150)
    await until(lambda: shelf.geometry().bottom() < composer.edit.geometry().top())
    await until(lambda: composer.edit.geometry().bottom() < composer.send_button.geometry().top())
    assert composer.rect().contains(composer.send_button.geometry())
    window.app_settings.set("look.zoom_pct", 100)
    composer.clear()
    assert shelf.isHidden()


@pytest.mark.sweep
async def test_a_second_chat_about_a_kept_document_says_what_is_cached(stage: Stage) -> None:
    """With the real model: the footer says how much of the prompt was there already."""

    window = await stage.ready(command=worker_command())
    inspector, library = window.views.inspector, window.controller.library
    chosen = assign(assign(Settings(), "sampling.max_tokens", 4), "prefill.mode", "off")
    inspector.set_settings(chosen)
    library.keep(Attachment("Tides.md", "The tide turns at noon and the pilots wait for it. " * 12))
    (kept,) = library.documents.listed()
    cached = []
    for question in ("When does the tide turn?", "Who waits?"):
        window.controller.chat.start()
        inspector.set_settings(chosen)
        library.attach(kept.id)
        message = replace(window.views.composer.message(), content=question)
        window.controller.asking.submit(message)
        await ready(window)
        finished = last(window).finished
        cached.append(finished.stats)
    assert cached[0].reused_tokens == 0
    # All but the question and the template around it.
    assert cached[1].read_tokens < 24
    answer = answer_view(window)
    assert f"{cached[1].reused_tokens:,} cached" in answer.footer.stats.figures
