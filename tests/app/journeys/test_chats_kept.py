"""Chats in the real window, kept on disk: closed and opened again, changed, found, deleted, damaged."""

from __future__ import annotations

import asyncio
import base64
import errno
import itertools
import re
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow
from pypdf import PdfReader
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QMessageBox

from app.chat.user_message import UserMessage
from app.controllers import transfer as transfer_module
from app.controls import sheets
from app.controls.sheets import first_folder
from app.launch.scenario import ask
from app.panels.chat_delegate import dots_rect
from app.session.chats.conversation import Conversation
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.store.chat_files import pieces
from app.store.library import Library
from core.events import Attachment, Message
from core.settings import read
from tests.app.stage import (
    Stage,
    answering,
    asked,
    choose_in_sheet,
    click,
    last,
    outside_of_tasks,
    press,
    ready,
    sheet,
    shown,
    stop,
    until,
)
from tests.app.store.chats import chat_of

CTRL = Qt.KeyboardModifier.ControlModifier


def titles(window: MainWindow) -> list[str]:
    rows = window.views.sidebar.list.model()
    return [str(rows.index(place, 0).data()) for place in range(rows.rowCount())]


def picture(size: tuple[int, int], colour: tuple[int, int, int]) -> bytes:
    stream = BytesIO()
    Pillow.new("RGB", size, colour).save(stream, "PNG")
    return stream.getvalue()


def filled(folder: Path, *chats: Conversation) -> None:
    library = Library(folder)
    for chat in chats:
        library.save(chat)
    library.close()


@pytest.mark.sweep
async def test_everything_comes_back(stage: Stage, tmp_path: Path) -> None:
    question = "Please write 40 words"
    window = await stage.ready(folder=tmp_path)
    await asked(window, question)
    await asked(window, "And write 9 more")
    window.controller.chat.start()
    await asked(window, "Another: write 5")
    window.views.composer.set_text("not sent yet")
    window.views.composer.attach(Attachment("notes.txt", "some notes"))
    window.controller.chat.select(window.controller.chats.listed()[1].id)
    window.views.composer.set_text("a follow-up")
    # Kept without leaving the chat.
    await until(lambda: window.controller.chats.open.draft.content == "a follow-up")
    window.views.header.token_colors.set_value("origins")
    window.resize(1300, 800)
    window.columns.show_inspector(False)
    kept = window.controller.chats.open
    window.close()  # all is saved, so nothing is asked
    await asyncio.wait_for(window.closed(), 60)

    window = await stage.open(folder=tmp_path)
    chat = window.controller.chats.open
    assert (chat.id, chat.turns) == (kept.id, kept.turns)
    assert window.views.header.title == question
    assert shown(window) == last(window).text
    assert {token.origin for token in chat.turns[0].answer.tokens} == {"accepted", "bonus", "normal"}
    assert titles(window) == ["Today", "Another: write 5", question]
    assert window.views.composer.text == "a follow-up"
    assert (window.width(), window.height()) == (1300, 800)
    assert window.columns.arrangement.inspector_px == 0
    assert window.views.header.token_colors.value == "origins"
    window.controller.chat.select(window.controller.chats.listed()[0].id)
    assert window.views.composer.text == "not sent yet"
    assert [each.name for each in window.views.composer.attachments] == ["notes.txt"]
    await asked(window, "go on and write 3")
    assert len(window.controller.chats.open.turns) == 2
    assert window.controller.chats.open.draft.content == ""
    # An answer is on disk while it is written.
    await answering(window, tokens=30)
    other = Library(tmp_path)
    assert other.elsewhere
    await until(lambda: len(other.load(window.controller.chats.open.id).turns[-1].answer.tokens) > 20)
    other.close()


async def test_searching_by_key_and_going_to_what_is_found(stage: Stage, tmp_path: Path) -> None:
    long = chat_of(10, 30, 200)
    herons = replace(long.turns[9], user=Message("user", "Where do the herons nest?"))
    lamps = f"How many lamps are there on the {'northern ' * 20}pier, and who are their keepers?"
    filled(tmp_path, *(chat_of(number, 2, 30, f"About ferry {number}") for number in range(5)))
    filled(
        tmp_path, chat_of(9, 1, 8, lamps), replace(long, turns=(*long.turns[:9], herons, *long.turns[10:]))
    )
    window = await stage.open(folder=tmp_path)
    sidebar, transcript = window.views.sidebar, window.views.transcript
    await press(window, Qt.Key.Key_K, CTRL)
    assert sidebar.search.hasFocus()
    sidebar.search.setText("keepers")
    await until(lambda: "1 chat found" in titles(window))
    row = sidebar.list.row("c9")
    assert [row.passage[begin:end] for begin, end in row.marks] == ["keepers"]
    await press(window, Qt.Key.Key_Return)
    assert window.controller.chats.open.id == "c9"
    assert "1 chat found" in titles(window)
    sidebar.search.setText("herons")
    await press(window, Qt.Key.Key_K, CTRL)
    await until(lambda: sidebar.list.row("c10") is not None and sidebar.list.row("c9") is None)
    await press(window, Qt.Key.Key_Return)
    assert window.controller.chats.open.id == "c10"
    assert not transcript.is_following
    seen = [
        message.body.accessibleDescription()
        for message in transcript.findChildren(UserMessage)
        if not message.visibleRegion().isEmpty()
    ]
    assert seen[0] == "Where do the herons nest?"
    sidebar.search.setText("nowhere to be seen")
    await until(lambda: sidebar.list.isHidden())
    sidebar.search.setFocus()
    await press(window, Qt.Key.Key_Escape)
    assert sidebar.search.text() == ""
    assert len(titles(window)) == 8


@pytest.mark.sweep
async def test_the_rows_of_the_sidebar_mark_rename_pin_and_open_a_menu(stage: Stage, tmp_path: Path) -> None:
    """Renamed in place, pinned, and with a menu; what was deleted thirty days ago is gone."""
    long_ago = datetime.now(UTC) - timedelta(days=30, minutes=1)
    filled(tmp_path, chat_of(1), chat_of(2), chat_of(3).with_deleted(long_ago))
    filled(tmp_path, chat_of(4).with_deleted(datetime.now(UTC)))
    window = await stage.open(folder=tmp_path)
    controller, rows = window.controller, window.views.sidebar.list
    assert [each.id for each in controller.chats.deleted()] == ["c4"]
    with pytest.raises(KeyError):
        controller.chats.get("c3")
    # The dots open the menu and not the chat.
    heard: list[str] = []
    rows.menu_requested.disconnect()
    rows.menu_requested.connect(lambda chat_id, where: heard.append(chat_id))
    before = controller.chats.open.id
    spot = dots_rect(rows.visualRect(rows.model().index(2, 0))).center()
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    await outside_of_tasks(lambda: QTest.mouseClick(rows.viewport(), left, none, spot))
    assert heard == ["c1"]
    assert controller.chats.open.id == before
    controller.chat.select("c1")
    rows.setFocus()
    await press(window, Qt.Key.Key_F2)
    editor = rows.findChild(QLineEdit)
    assert editor.text() == "Question 0 of chat 1"
    editor.setText("  Harbour   rules ")
    await outside_of_tasks(lambda: QTest.keyClick(editor, Qt.Key.Key_Return))
    assert window.views.header.title == "Harbour rules"
    assert "Harbour rules" in titles(window)
    controller.chat.listing.rename("c1", "")
    assert window.views.header.title == "Question 0 of chat 1"
    controller.chat.listing.rename("c2", "Second")
    menu = window.views.sidebar.menu_for("c1")
    next(action for action in menu.actions() if action.text() == "Pin to Top").trigger()
    assert titles(window)[:2] == ["Pinned", "Question 0 of chat 1"]
    menu.deleteLater()

    window = await stage.open(folder=tmp_path)
    assert titles(window)[0] == "Pinned"
    assert "Second" in titles(window)
    window.controller.chat.listing.pin("c1", False)
    assert "Pinned" not in titles(window)

    # The chat that is being answered is marked, and deleting it stops the answer.
    rows, controller = window.views.sidebar.list, window.controller
    controller.chat.start()
    await answering(window)
    chat_id = controller.chats.open.id
    controller.chat.start()
    assert rows.row(chat_id).busy
    controller.chat.select(chat_id)
    await stop(window)
    assert not rows.row(chat_id).busy
    await answering(window)
    window.views.notice_bar.set_time_ms(20)
    controller.chat.listing.delete(chat_id)
    await ready(window)
    await until(lambda: window.views.notice_bar.isHidden())
    controller.chat.listing.undo()
    assert controller.chats.open.id == chat_id
    assert last(window).status == "stopped"


@pytest.mark.sweep
async def test_deleting_and_taking_it_back(stage: Stage, tmp_path: Path) -> None:
    filled(tmp_path, chat_of(1), chat_of(2))

    window = await stage.open(folder=tmp_path)
    bar = window.views.notice_bar
    window.controller.chat.select("c2")
    window.views.sidebar.list.setFocus()
    await press(window, Qt.Key.Key_Delete)
    assert bar.isVisible()
    assert bar.text == "“Question 0 of chat 2” deleted"
    assert window.controller.chats.open.id == "c1"
    assert len(titles(window)) == 2
    await click(bar.action_button)
    assert bar.isHidden()
    assert window.controller.chats.open.id == "c2"
    assert len(titles(window)) == 3
    window.controller.chat.listing.delete("c1")
    window = await stage.open(folder=tmp_path)
    bar = window.views.notice_bar
    assert bar.isHidden()
    window.menu_actions["undo_delete"].trigger()
    assert window.controller.chats.get("c1").turns == chat_of(1).turns
    assert window.controller.chats.open.id == "c1"
    bar.set_time_ms(50)
    window.controller.chat.listing.delete("c1")
    await until(lambda: bar.isHidden())
    # The bar is gone, the chat is not.
    window.menu_actions["deleted"].trigger()
    deleted = window.windows.find("deleted")
    assert [(row.title, row.when) for row in deleted.list.rows] == [("Question 0 of chat 1", "30 days")]
    await click(deleted.restore_button)
    assert deleted.list.rows == ()
    assert window.controller.chats.open.id == "c1"
    window.controller.chat.listing.delete("c1")
    await click(deleted.erase_button)
    assert deleted.list.rows == ()
    window = await stage.open(folder=tmp_path)
    assert window.views.notice_bar.isHidden()
    with pytest.raises(KeyError):
        window.controller.chats.get("c1")
    window.controller.chat.listing.delete("c2")
    assert window.controller.chats.open.turns == ()
    assert window.views.pages.currentWidget() is window.views.first_page


@pytest.mark.sweep
async def test_a_chat_holds_its_own_settings(stage: Stage, tmp_path: Path) -> None:
    key = "sampling.temperature"

    window = await stage.open(folder=tmp_path)
    inspector = window.views.inspector
    await asked(window, "write 3")
    own = window.controller.chats.open.id
    inspector.field(key).edited.emit(key, 1.5)
    assert inspector.section("basics").is_own
    assert not inspector.section("drafting").is_own
    window.controller.chat.start()
    assert read(inspector.settings, key) == 0.0
    assert not inspector.section("basics").is_own
    await asked(window, "write 2")
    window.controller.chat.select(own)
    assert read(inspector.settings, key) == 1.5
    window = await stage.open(folder=tmp_path)
    inspector = window.views.inspector
    assert read(inspector.settings, key) == 1.5
    section = inspector.open_section("basics")
    foot = inspector.own_settings("basics")
    assert foot.isVisible()
    await click(foot.default_button)
    assert foot.isHidden()
    assert not section.is_own
    window.controller.chat.start()
    assert read(inspector.settings, key) == 1.5
    inspector.field(key).edited.emit(key, 0.5)
    assert section.is_own
    await click(foot.reset_button)
    assert read(inspector.settings, key) == 1.5
    assert window.controller.chats.open.overrides == ()
    window = await stage.open(folder=tmp_path)
    assert read(window.views.inspector.settings, key) == 1.5
    assert not window.views.inspector.section("basics").is_own


async def test_a_second_window_says_that_it_saves_nothing_also_after_a_death(
    stage: Stage, tmp_path: Path
) -> None:
    filled(tmp_path, chat_of(1))
    other = Library(tmp_path)
    window = await stage.open(folder=tmp_path)
    banner = window.views.banner
    unsaved = banner.trouble
    assert "another Draftlight" in unsaved.title
    assert len(titles(window)) == 2
    await asked(window, "write 3")
    assert banner.trouble == unsaved  # a model that is ready changes nothing of it
    assert len(window.controller.chats.listed()) == 2
    ask(window, "die 5")
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert (banner.trouble.remedy, banner.count_label.text()) == ("restart", "1 of 2")
    await click(banner.next_button)
    assert (banner.trouble, banner.count_label.text()) == (unsaved, "2 of 2")
    await click(banner.next_button)
    await click(banner.remedy_button)
    await ready(window)
    assert banner.trouble == unsaved  # the worker is back, and still nothing is saved
    assert banner.count_label.isHidden()
    await click(banner.close_button)
    assert banner.isHidden()
    await stage.close()
    other.close()
    library = Library(tmp_path)
    assert len(library.summaries()) == 1
    library.close()


@pytest.mark.sweep
async def test_out_into_files_and_in_again_where_the_context_is_counted(stage: Stage, tmp_path: Path) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    chats = [chat_of(number, 2, 12) for number in range(3)]
    filled(home, *chats)
    window = await stage.open(folder=home)
    transfer = window.controller.chat.transfer
    for chat_id, kind in (("c1", "json"), ("c1", "markdown"), ("", "json")):
        transfer.export(chat_id, kind)
        dialog = await sheet(window)
        assert dialog.directory().path() == first_folder()  # not where the app happens to run
        await choose_in_sheet(window, files / Path(dialog.selectedFiles()[0]).name)
    transfer.export("", "markdown")  # none of those under way is dropped for it
    await choose_in_sheet(window, files)
    await until(lambda: not transfer.is_busy)
    assert sorted(path.name for path in files.iterdir()) == [
        "Draftlight chats.json",
        "Question 0 of chat 0.md",
        "Question 0 of chat 1 (2).md",
        "Question 0 of chat 1.json",
        "Question 0 of chat 1.md",
        "Question 0 of chat 2.md",
    ]

    window = await stage.open(folder=tmp_path / "elsewhere")
    controller = window.controller
    (files / "holiday.json").write_text('{"photos": []}')
    chosen = [files / "holiday.json", files / "Draftlight chats.json", files / "Question 0 of chat 1.md"]
    controller.chat.importing.choose()
    await choose_in_sheet(window, *chosen)
    await until(lambda: not controller.chat.importing.is_busy)
    listed = {each.id for each in controller.chats.listed()}
    assert listed > {"c0", "c1", "c2"}
    assert [controller.chats.get(chat.id) for chat in chats] == chats
    assert controller.chats.open.id == "c2"
    assert "holiday.json" in window.views.banner.trouble.title
    (words,) = listed - {"c0", "c1", "c2"}
    controller.chat.select(words)
    assert last(window).text == chats[1].turns[-1].answer.text.strip("\n")

    file = tmp_path / "old.md"
    file.write_text("# Old\n\n## You\n\n" + "word " * 300 + "\n\n## Answer\n\n" + "answer " * 200)

    await ready(window)
    pill = window.views.composer.pill
    window.controller.chat.importing.import_from([file])
    await until(lambda: pill.used_tokens == 500, what=f"{pill.used_tokens} of 500")
    window.views.composer.set_text("and now?")
    await until(lambda: pill.used_tokens == 502)
    window.controller.chat.start()
    window.views.composer.set_text("")
    await until(lambda: pill.used_tokens == 0)


@pytest.mark.sweep
async def test_images_go_out_with_every_kind_of_file_and_in_again(stage: Stage, tmp_path: Path) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    library = Library(home)
    chat = chat_of(1, 1, 5)
    # Larger than what a page shows; its bytes go beside Markdown and JSON as they are.
    kept = library.images.keep(picture((1200, 600), (200, 30, 40)), "receipt.png")
    gone = replace(kept, name="gone.png", hash="9" * 64)
    user = Message("user", "What does it cost?", images=(kept, gone))
    library.save(replace(chat, turns=(replace(chat.turns[0], user=user),)))
    library.close()
    window = await stage.open(folder=home)
    transfer, name = window.controller.chat.transfer, "What does it cost"
    for kind in ("markdown", "json", "html", "pdf"):
        transfer.export("c1", kind)
        if kind in ("html", "pdf"):
            await click((await sheet(window, sheets.OptionsSheet)).accept_button)
        await choose_in_sheet(window, files / f"{name}.{kind}")
        await until(lambda: not transfer.is_busy)
    assert sorted(each.name for each in files.iterdir()) == [
        f"{name}-images", f"{name}.html", f"{name}.json", f"{name}.markdown", f"{name}.pdf",
    ]  # fmt: skip
    assert [each.name for each in (files / f"{name}-images").iterdir()] == ["receipt.png"]
    assert (files / f"{name}-images" / "receipt.png").read_bytes() == Path(kept.path).read_bytes()
    assert f"![receipt.png]({quote(name)}-images/receipt.png)" in (files / f"{name}.markdown").read_text()
    page = (files / f"{name}.html").read_text()
    (shown,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert Pillow.open(BytesIO(base64.b64decode(shown))).size == (960, 480)
    assert "The image “gone.png” is missing." in page
    (drawn,) = PdfReader(files / f"{name}.pdf").pages[0].images
    assert drawn.image.size == (960, 480)

    for kind in ("markdown", "json"):
        window = await stage.open(folder=tmp_path / f"elsewhere-{kind}")
        chats, importing = window.controller.chats, window.controller.chat.importing
        assert not window.controller.home.library.images.is_kept(kept.hash)
        importing.import_from([files / f"{name}.{kind}"])
        await until(partial(lambda each: not each.is_busy, importing))
        (listed,) = (each.id for each in chats.listed() if each.title)
        images = chats.get(listed).turns[0].user.images
        assert [each.name for each in images] == ["receipt.png", "gone.png"]
        assert Path(images[0].path).read_bytes() == Path(kept.path).read_bytes()
        assert not Path(images[1].path).exists()


async def test_an_export_that_fails_leaves_the_old_file(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: the second chat cannot be written any more."""
    home, old = tmp_path / "home", tmp_path / "files" / "All.json"
    old.parent.mkdir()
    old.write_text("the export of last week")
    filled(home, *(chat_of(number, 1, 5) for number in range(3)))
    threads: list[bool] = []

    def cut_off(chats: Iterable[Conversation]) -> Iterator[bytes]:
        for piece in itertools.islice(pieces(chats), 4):
            threads.append(threading.current_thread() is threading.main_thread())
            yield piece
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(transfer_module, "pieces", cut_off)

    window = await stage.open(folder=home)
    transfer, banner = window.controller.chat.transfer, window.views.banner
    transfer.export("", "json")
    await choose_in_sheet(window, old)
    question = await sheet(window, QMessageBox)
    assert question.text() == "“All.json” already exists. Do you want to replace it?"
    await click(question.button(QMessageBox.StandardButton.Cancel))
    await choose_in_sheet(window, old)
    await confirm_replacing(window)
    await until(lambda: not transfer.is_busy)
    assert f"{old} could not be written: No space left" in banner.trouble.title
    assert old.read_text() == "the export of last week"
    assert list(old.parent.iterdir()) == [old]
    assert threads == [False] * 4  # nor did the window stand still
    # Closing gives up what is not written; the old file stays.
    monkeypatch.setattr(transfer_module, "pieces", pieces)
    transfer.export("", "json")
    await choose_in_sheet(window, old)
    await confirm_replacing(window)
    await stage.close()
    assert old.read_text() == "the export of last week"
    assert list(old.parent.iterdir()) == [old]


async def confirm_replacing(window: MainWindow) -> None:
    question = await sheet(window, QMessageBox)
    button = next(each for each in question.buttons() if each.text() == sheets.REPLACE)
    await click(button)


class _Opened(QObject):
    """Hears which folders the system is asked to open."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[str] = []

    @Slot(QUrl)
    def take(self, url: QUrl) -> None:
        self.paths.append(url.toLocalFile())


@pytest.mark.sweep
async def test_an_export_to_every_kind_of_file_says_what_it_wrote_and_where(
    stage: Stage, tmp_path: Path
) -> None:
    home, files = tmp_path / "home", tmp_path / "files"
    files.mkdir()
    filled(home, *(chat_of(number, 1, 5) for number in range(2)))
    opened = _Opened()
    QDesktopServices.setUrlHandler("file", opened, "take")

    try:
        window = await stage.open(folder=home)
        notice, banner, transfer = (
            window.views.notice_bar,
            window.views.banner,
            window.controller.chat.transfer,
        )
        transfer.export("c1", "markdown")
        await choose_in_sheet(window, files / "Tides.md")
        await until(lambda: not transfer.is_busy)
        assert notice.isVisible()
        assert notice.text == "Exported 1 chat as “Tides.md”"
        await click(notice.action_button)
        assert opened.paths == [str(files)]
        await click(notice.close_button)
        assert notice.isHidden()
        transfer.export("", "markdown")
        await choose_in_sheet(window, files)
        await until(lambda: not transfer.is_busy)
        assert notice.text == "Exported 2 chats into the folder “files”"
        notice.set_time_ms(400)
        transfer.export("", "json")
        await choose_in_sheet(window, files / "All.json")
        await until(lambda: notice.text == "Exported 2 chats as “All.json”")
        await until(lambda: notice.isHidden())
        # What could not be written is told, and nothing else.
        transfer.export("c1", "json")
        await choose_in_sheet(window, files / "gone" / "Tides.md")
        await until(lambda: not transfer.is_busy)
        assert notice.isHidden()
        assert "Tides.md could not be written: No such file" in banner.trouble.title
        banner.dismissed.emit()
        transfer.export("c1", "json")
        await choose_in_sheet(window, files / f"{'ä' * 200}.md")
        await until(lambda: banner.trouble is not None)
        assert "ä.md could not be written: File name too long" in banner.trouble.title
        banner.dismissed.emit()
        # Nor can a folder be shown that is not there any more.
        notice.set_time_ms(20_000)
        transfer.export("c1", "markdown")
        await choose_in_sheet(window, files / "Tides.md")
        await confirm_replacing(window)
        await until(lambda: not transfer.is_busy)
        shutil.rmtree(files)
        await click(notice.action_button)
        assert "could not be opened" in banner.trouble.title
        await stage.close()
    finally:
        QDesktopServices.unsetUrlHandler("file")

    window.controller.chat.start()
    home = tmp_path / "home"
    filled(home, *(chat_of(number, 2, 5) for number in range(2)))

    every = tmp_path / "every"
    every.mkdir()
    window = await stage.open(folder=home)
    transfer = window.controller.chat.transfer
    for kind, checked in (("html", (False, False)), ("pdf", (False, True))):
        transfer.export("c1", kind)
        options = await sheet(window, sheets.OptionsSheet)
        assert tuple(box.isChecked() for box in options.boxes) == checked
        options.boxes[1].setChecked(True)
        await click(options.accept_button)
        await choose_in_sheet(window, tmp_path / f"chat.{kind}")
        await until(lambda: not transfer.is_busy)
    transfer.export("c1", "pdf")
    options = await sheet(window, sheets.OptionsSheet)
    options.reject()
    assert not transfer.is_busy
    for kind in ("html", "pdf"):
        transfer.export("", kind)
        options = await sheet(window, sheets.OptionsSheet)
        await click(options.accept_button)
        await choose_in_sheet(window, every)
        await until(lambda: not transfer.is_busy)
    assert window.views.notice_bar.text == "Exported 2 chats into the folder “every”"
    await stage.close()
    pages = sorted(every.glob("*.html"))
    assert len(pages) == len(sorted(every.glob("*.pdf"))) == 2
    assert [f"Question 1 of chat {n}" in page.read_text() for n, page in enumerate(pages)] == [True, True]
    page, pdf = (tmp_path / "chat.html").read_text(), (tmp_path / "chat.pdf").read_bytes()
    assert "Question 0 of chat 1" in page
    assert "Question 1 of chat 1" in page
    assert "of chat 0" not in page
    assert pdf.startswith(b"%PDF-")


def _questions(folder: Path) -> list[str]:
    """What is asked in all chats, as another process reads the file."""
    library = Library(folder)
    found = [turn.user.content for each in library.summaries() for turn in library.load(each.id).turns]
    library.close()
    return found


async def test_a_question_is_on_the_disk_before_its_answer_unless_the_disk_hangs(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    ask(window, "write 1 first")
    await until(lambda: bool(last(window).tokens))
    assert _questions(tmp_path) == ["write 1 first"]
    await ready(window)
    other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # nothing can be written meanwhile
    ask(window, "write 1 second")
    await asyncio.sleep(0.4)
    assert not last(window).tokens
    other.execute("ROLLBACK")
    other.close()
    await until(lambda: bool(last(window).tokens))
    assert _questions(tmp_path) == ["write 1 first", "write 1 second"]

    # A disk that hangs is not waited for.
    await ready(window)
    assert window.controller.home.library.flush()
    other = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ask(window, "write 1 third")
    await until(lambda: bool(last(window).tokens))
    trouble = window.views.banner.trouble
    assert trouble.title == "The chats cannot be saved."
    # What is being written stays when the disk is back.
    await ready(window)
    window.controller.asking.edit()
    window.views.composer.set_text("a careful rewording")
    other.execute("ROLLBACK")
    other.close()
    await until(lambda: window.views.banner.isHidden())
    assert window.views.composer.text == "a careful rewording"
    assert window.controller.asking.readiness.edited
    assert _questions(tmp_path) == ["write 1 first", "write 1 second", "write 1 third"]
