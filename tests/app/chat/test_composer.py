"""The composer, driven by real keys, paste and clicks."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer
from app.chat.composer_edit import DOCUMENT_CHARACTERS
from app.theme.theme import Theme
from core.errors import RequestError
from core.events import Attachment, Message

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    widget = Composer(Theme("light"))
    qtbot.addWidget(widget)
    widget.resize(752, widget.sizeHint().height())
    widget.show()
    widget.edit.setFocus()
    return widget


def sent(composer: Composer) -> list[Message]:
    messages: list[Message] = []
    composer.message_submitted.connect(messages.append)
    return messages


def test_return_sends_and_the_text_stays_until_it_is_taken(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    qtbot.keyClicks(composer.edit, "  What is this? ")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == [Message("user", "What is this?")]
    assert composer.text == "  What is this? "
    composer.clear()
    assert composer.text == ""


def test_the_enter_of_the_number_pad_sends_too(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    qtbot.keyClicks(composer.edit, "Hi")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    assert len(messages) == 1


def test_shift_return_breaks_the_line(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    qtbot.keyClicks(composer.edit, "One")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, SHIFT)
    qtbot.keyClicks(composer.edit, "Two")
    assert messages == []
    assert composer.text == "One\nTwo"


@pytest.mark.parametrize("text", ["", "   "])
def test_nothing_is_not_sent(qtbot: QtBot, composer: Composer, text: str) -> None:
    messages = sent(composer)
    qtbot.keyClicks(composer.edit, text)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == []
    assert not composer.send_button.isEnabled()


def test_the_button_sends(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    qtbot.keyClicks(composer.edit, "Hi")
    qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert messages == [Message("user", "Hi")]


def test_busy_stops_and_does_not_send(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    composer.set_busy()
    qtbot.keyClicks(composer.edit, "Next")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == []
    assert composer.text == "Next"
    with qtbot.waitSignal(composer.stop_requested, timeout=500):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    with qtbot.waitSignal(composer.stop_requested, timeout=500):
        qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert composer.send_button.accessibleName() == "Stop answering"


def test_escape_means_nothing_while_idle(qtbot: QtBot, composer: Composer) -> None:
    with qtbot.assertNotEmitted(composer.stop_requested):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)


def test_blocked_keeps_the_text_and_says_why(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    composer.set_blocked("Sending is paused.")
    qtbot.keyClicks(composer.edit, "Hi")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == []
    assert not composer.send_button.isEnabled()
    assert composer.blocked_reason == "Sending is paused."
    composer.set_idle()
    assert composer.blocked_reason == ""
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == [Message("user", "Hi")]


def test_a_long_paste_becomes_a_chip_and_a_short_one_does_not(qtbot: QtBot, composer: Composer) -> None:
    document = "word " * (DOCUMENT_CHARACTERS // 5 + 1)
    clipboard = QGuiApplication.clipboard()
    clipboard.setText("short")
    qtbot.keyClick(composer.edit, Qt.Key.Key_V, CTRL)
    clipboard.setText(document)
    qtbot.keyClick(composer.edit, Qt.Key.Key_V, CTRL)
    assert composer.text == "short"
    assert composer.attachments == (Attachment("Pasted text", document),)


def test_a_raw_paste_is_never_a_chip(qtbot: QtBot, composer: Composer) -> None:
    document = "word " * (DOCUMENT_CHARACTERS // 5 + 1)
    QGuiApplication.clipboard().setText(document)
    qtbot.keyClick(composer.edit, Qt.Key.Key_V, CTRL | SHIFT)
    assert composer.text == document
    assert composer.attachments == ()


def test_rich_text_is_pasted_plain(composer: Composer) -> None:
    mime = QMimeData()
    mime.setHtml("<b>bold</b>")
    mime.setText("bold")
    composer.edit.insertFromMimeData(mime)
    assert composer.text == "bold"
    assert "font-weight" not in composer.edit.toHtml().partition("<body")[2].partition(">")[2]


def test_a_document_alone_can_be_sent_and_removed(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    composer.attach(Attachment("a.txt", "A"))
    composer.attach(Attachment("b.txt", "B"))
    (first, _) = composer._chips.chips
    with qtbot.waitSignal(composer.draft_changed, timeout=500):
        qtbot.mouseClick(first._remove, Qt.MouseButton.LeftButton)
    assert [attachment.name for attachment in composer.attachments] == ["b.txt"]
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == [Message("user", "", (Attachment("b.txt", "B"),))]


def test_chips_say_characters_until_tokens_are_counted(composer: Composer) -> None:
    composer.attach(Attachment("a.txt", "A" * 1500))
    (chip,) = composer._chips.chips
    assert chip.size_text == "1,500 characters"
    composer.show_tokens({"A" * 1500: 300}.get)
    assert chip.size_text == "300 tokens"
    assert chip.accessibleDescription() == "300 tokens"


def test_many_chips_wrap_and_the_composer_grows(qtbot: QtBot, composer: Composer) -> None:
    low = composer.sizeHint().height()
    for index in range(9):
        composer.attach(Attachment(f"document number {index}.txt", "x"))
    qtbot.waitUntil(lambda: composer.sizeHint().height() > low + 80, timeout=1000)
    tops = {chip.y() for chip in composer._chips.chips}
    assert len(tops) == 3
    assert all(chip.geometry().right() <= composer._chips.width() for chip in composer._chips.chips)


def test_it_grows_to_eight_lines_and_then_scrolls(qtbot: QtBot, composer: Composer) -> None:
    heights = []
    for lines in (1, 2, 8, 12):
        composer.set_text("\n".join(["x"] * lines))
        heights.append(composer.edit.height())
    assert heights == [24, 42, 168, 168]
    assert composer.edit.verticalScrollBar().maximum() > 0


def test_replacing_the_text_can_be_undone(qtbot: QtBot, composer: Composer) -> None:
    qtbot.keyClicks(composer.edit, "mine")
    composer.set_text("an example")
    composer.edit.undo()
    assert composer.text == "mine"


def test_a_message_that_comes_back_is_whole(composer: Composer) -> None:
    message = Message("user", "What is it?", (Attachment("a.txt", "A"),))
    composer.set_message(message)
    assert composer.message() == message
    composer.clear()
    assert composer.message() == Message("user", "")


def test_files_are_attached_and_others_refused(composer: Composer, tmp_path: Path) -> None:
    refused: list[RequestError] = []
    composer.attach_failed.connect(refused.append)
    text, picture = tmp_path / "berths.csv", tmp_path / "picture.png"
    text.write_bytes("\ufeffnorth,1\r\nsouth,2\r\n".encode())
    picture.write_bytes(b"\x89PNG\xff\xfe")
    composer.attach_files([text, picture, tmp_path / "nowhere.txt", tmp_path])
    assert composer.attachments == (Attachment("berths.csv", "north,1\nsouth,2\n"),)
    assert [type(error) for error in refused] == [RequestError] * 3
    assert "picture.png" in refused[0].message


def test_a_file_can_be_dropped(composer: Composer, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("notes")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(file))])
    where, buttons, keys = QPoint(50, 20), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(where, Qt.DropAction.CopyAction, mime, buttons, keys)
    QApplication.sendEvent(composer, enter)
    assert enter.isAccepted()
    assert composer._dragging
    QApplication.sendEvent(composer, QDragLeaveEvent())
    assert not composer._dragging
    QApplication.sendEvent(composer, QDragEnterEvent(where, Qt.DropAction.CopyAction, mime, buttons, keys))
    QApplication.sendEvent(
        composer, QDropEvent(QPointF(where), Qt.DropAction.CopyAction, mime, buttons, keys)
    )
    assert composer.attachments == (Attachment("notes.txt", "notes"),)
    assert not composer._dragging


def test_the_pill_is_hidden_until_the_context_is_known_and_warns_above_85_percent(composer: Composer) -> None:
    pill = composer.pill
    assert pill.isHidden()
    pill.show_context(6214, 32768)
    assert pill.isVisible()
    assert not pill.near_limit
    assert pill.accessibleName() == "Context: 6,214 of 32,768 tokens used"
    pill.show_context(30502, 32768)
    assert pill.near_limit
    vermilion = composer._theme.color("series_vermilion")
    image = pill.grab().toImage()
    colors = {image.pixelColor(x, y).name() for x in range(7, 21) for y in range(24)}
    assert vermilion.name() in colors


def test_tab_goes_from_the_text_through_the_buttons(qtbot: QtBot, composer: Composer) -> None:
    composer.set_text("Hi")
    order = []
    for _ in range(3):
        order.append(QApplication.focusWidget())
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert order == [composer.edit, composer._attach, composer.send_button]


def test_every_control_has_a_name(composer: Composer) -> None:
    composer.attach(Attachment("a.txt", "A"))
    (chip,) = composer._chips.chips
    for control in (composer.edit, composer._attach, composer.send_button, chip, chip._remove):
        assert control.accessibleName()


def test_a_change_of_theme_recolors_the_text(qtbot: QtBot) -> None:
    theme = Theme("light")
    widget = Composer(theme)
    qtbot.addWidget(widget)
    widget.set_text("Hi")
    theme.set_scheme("dark")
    assert widget.edit.palette().text().color() == theme.color("text")
