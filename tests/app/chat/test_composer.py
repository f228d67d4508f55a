"""The composer, driven by real keys, paste and clicks; quotes in it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.exceptions import capture_exceptions
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.chat.composer import Composer
from app.chat.composer_edit import quote_lines
from app.chat.composer_tools import ContextUse, MessageSize
from app.chat.file_reader import FileReader, Reading
from app.chat.intents import (
    EditMessage,
    Escape,
    Intent,
    MoveToNewChat,
    OpenAttachment,
    SendMessage,
    StopAnswer,
)
from app.controls.buttons import Button
from app.theme.theme import theme
from core.documents.limits import QUICK_BYTES
from core.errors import RequestError
from core.events import Attachment, LeftOut, Message
from tests.app.stage import drop
from tests.core.documents.made import pdf_of

DOCUMENT = "word " * 2_500
NAME = "word word word word word word word word…"  # by its first line
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    widget = Composer()
    qtbot.addWidget(widget)
    widget.resize(752, widget.sizeHint().height())
    widget.show()
    widget.edit.setFocus()
    return widget


def test_what_is_cancelled_is_not_reported_and_the_next_file_is(qtbot: QtBot, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.md").write_text(name * 40)
    told: list[Reading] = []
    reader = FileReader(told.append, told.append)
    _, waiting = (reader.read(tmp_path / f"{name}.md") for name in "ab")
    assert reader.busy
    reader.cancel_all()
    assert not reader.busy
    last = reader.read(tmp_path / "c.md")
    qtbot.waitUntil(lambda: bool(told) and not reader.busy, timeout=60_000)
    assert set(told) == {last}
    assert last.result == Attachment("c.md", "c" * 40)
    assert waiting.result is None


def sent(composer: Composer) -> list[Message]:
    messages: list[Message] = []

    def note(intent: Intent) -> None:
        if isinstance(intent, SendMessage):
            messages.append(intent.message)

    composer.intent.connect(note)
    return messages


def intents_of(composer: Composer) -> list[Intent]:
    intents: list[Intent] = []
    composer.intent.connect(intents.append)
    return intents


def test_return_enter_and_a_click_send_and_keep_the_text_until_it_is_cleared(
    qtbot: QtBot, composer: Composer
) -> None:
    messages, edit = sent(composer), composer.edit
    for nothing in ("", "   "):
        composer.set_text(nothing)
        qtbot.keyClick(edit, Qt.Key.Key_Return)
        assert not composer.send_button.isEnabled()
    composer.set_text("")
    qtbot.keyClicks(edit, "  One")
    qtbot.keyClick(edit, Qt.Key.Key_Return, SHIFT)
    qtbot.keyClicks(edit, "Two ")
    assert messages == []
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    qtbot.keyClick(edit, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert messages == [Message("user", "  One\nTwo")] * 3
    assert composer.text == "  One\nTwo "
    composer.clear()
    assert composer.text == ""


def test_busy_it_stops_and_blocked_it_says_why_and_neither_sends(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    composer.set_state("busy")
    qtbot.keyClicks(composer.edit, "Next")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    intents = intents_of(composer)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    qtbot.mouseClick(composer.send_button, Qt.MouseButton.LeftButton)
    assert intents == [Escape(), StopAnswer()]
    assert composer.send_button.accessibleName() == "Stop generating"
    composer.set_state("blocked", "Sending is paused.")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert (messages, composer.text) == ([], "Next")
    assert not composer.send_button.isEnabled()
    assert composer.blocked_reason == "Sending is paused."
    composer.set_state("idle")
    assert composer.blocked_reason == ""
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == [Message("user", "Next")]


def paste(qtbot: QtBot, composer: Composer, text: str, held: Qt.KeyboardModifier = CTRL) -> None:
    QGuiApplication.clipboard().setText(text)
    qtbot.keyClick(composer.edit, Qt.Key.Key_V, held)


def test_a_long_paste_becomes_a_chip_and_a_short_or_raw_one_does_not(
    qtbot: QtBot, composer: Composer
) -> None:
    paste(qtbot, composer, "short")
    paste(qtbot, composer, DOCUMENT)
    assert composer.text == "short"
    assert composer.attachments == (Attachment(NAME, DOCUMENT),)
    paste(qtbot, composer, DOCUMENT, CTRL | SHIFT)
    assert composer.text == "short" + DOCUMENT
    composer.clear()
    rich = QMimeData()
    rich.setHtml("<b>bold</b>")
    rich.setText("bold")
    composer.edit.insertFromMimeData(rich)
    assert composer.text == "bold"
    assert "font-weight" not in composer.edit.toHtml().partition("<body")[2].partition(">")[2]


def test_a_document_alone_can_be_sent_and_removed(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    composer.attach(Attachment("a.txt", "A"))
    composer.attach(Attachment("b.txt", "B"))
    (first, _) = composer.chips.chips
    with qtbot.waitSignal(composer.draft_changed, timeout=20_000):
        qtbot.mouseClick(first.remove_button, Qt.MouseButton.LeftButton)
    assert [attachment.name for attachment in composer.attachments] == ["b.txt"]
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == [Message("user", "", (Attachment("b.txt", "B"),))]


def test_chips_say_how_many_tokens_and_what_the_text_lacks(composer: Composer) -> None:
    composer.attach(Attachment("a.txt", "A" * 1500))
    (chip,) = composer.chips.chips
    assert chip.note == "~380 tokens"
    composer.chips.show_tokens({"A" * 1500: 300}.get)
    assert chip.note == "300 tokens"
    assert chip.accessibleDescription() == "300 tokens"
    composer.chips.show_tokens(lambda text: None)  # another worker, which has counted nothing yet
    assert chip.note == "300 tokens"
    composer.attach(Attachment("b.xlsx", "A", left_out=(LeftOut("hidden row", 2, "S, rows 3 to 4"),)))
    assert composer.chips.chips[1].note == "~0 tokens, without 2 hidden rows"
    assert "2 hidden rows (S, rows 3 to 4)" in composer.chips.chips[1].accessibleDescription()


@pytest.mark.parametrize("flag", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier])
def test_up_in_an_empty_field_edits_the_last_message(
    qtbot: QtBot, composer: Composer, flag: Qt.KeyboardModifier
) -> None:
    intents = intents_of(composer)
    for key in (SHIFT, CTRL, Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.MetaModifier):
        qtbot.keyClick(composer.edit, Qt.Key.Key_Up, flag | key)
    assert intents == []
    qtbot.keyClick(composer.edit, Qt.Key.Key_Up, flag)
    assert intents == [EditMessage()]
    composer.set_text("written")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Up, flag)
    assert intents == [EditMessage()]


LONG = {
    "letters": "a" * 30_000,
    "words": "word " * 6_000,
    "lines": "a\n" * 1_000,
    "empty lines": "\n" * 5_000,
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("way", ["paste", "paste as plain text", "drop", "draft", "quote", "program"])
def test_no_text_is_longer_than_the_field_lays_out_at_once(
    qtbot: QtBot, composer: Composer, way: str, kind: str
) -> None:
    text = LONG[kind]
    dragged = QMimeData()
    dragged.setText(text)
    if way.startswith("paste"):
        paste(qtbot, composer, text, CTRL if way == "paste" else CTRL | SHIFT)
    elif way == "drop":
        drop(composer, dragged)
    elif way == "draft":
        composer.set_message(Message("user", text))
    elif way == "quote":
        composer.quote(text)
    else:
        composer.set_text(text)
    if kind == "empty lines" and way == "quote":
        assert composer.is_empty
        return
    if composer.attachments:
        assert composer.attachments[0].text == text  # nothing is lost
        assert composer.text == ""
    else:
        assert len(composer.text) <= 16_000
        assert composer.text.count("\n") <= 1_000


def test_many_short_pastes_are_not_longer_than_the_field(qtbot: QtBot, composer: Composer) -> None:
    part = "word " * 2_000
    for _ in range(4):
        paste(qtbot, composer, part, CTRL | SHIFT)
    assert composer.text == part
    assert [each.text for each in composer.attachments] == [part] * 3


@pytest.mark.quiet
@pytest.mark.parametrize(
    "text", ["a" * 15_999, "a " * 7_999, "ab " * 330 + "\n" * 999, "漢" * 15_999, "👍" * 15_999]
)
def test_the_longest_text_of_the_field_does_not_block_the_window(
    qtbot: QtBot, composer: Composer, text: str
) -> None:
    started = time.process_time()
    composer.set_text(text)
    QApplication.processEvents()
    assert time.process_time() - started < 0.2
    assert composer.text == text


def test_pasted_code_keeps_its_first_indentation(composer: Composer) -> None:
    code = "    def f():\n        pass"
    for typed in (code, f"\n \n{code}\n\n  \t", f"  \n\n{code} "):
        composer.set_text(typed)
        assert composer.message().content == code
    for typed in ("", " ", "\n \n\t"):
        composer.set_text(typed)
        assert composer.message().content == ""
    composer.set_text("\u3000Hello\u00a0 \n")
    assert composer.message().content == "\u3000Hello"


def test_old_line_ends_of_the_clipboard_end_lines(qtbot: QtBot, composer: Composer) -> None:
    """Some programs on macOS end lines with a carriage return."""
    for text in ("a\rb\r\nc\n", DOCUMENT + "\rb\r\nc\n"):
        paste(qtbot, composer, text)
    assert composer.text == "a\nb\nc\n"
    assert composer.attachments[0].text == DOCUMENT + "\nb\nc\n"


def test_many_chips_are_one_row(qtbot: QtBot, composer: Composer) -> None:
    low = composer.sizeHint().height()
    composer.attach(Attachment("document number 0.txt", "x"))
    qtbot.waitUntil(lambda: composer.sizeHint().height() > low + 40, timeout=20_000)
    high = composer.sizeHint().height()
    for index in range(1, 9):
        composer.attach(Attachment(f"document number {index}.txt", "x"))
    row = composer.chips
    qtbot.waitUntil(lambda: row.horizontalScrollBar().maximum() > 0, timeout=20_000)
    assert composer.sizeHint().height() == high
    assert {(chip.y(), chip.height()) for chip in row.chips} == {(0, 43)}
    lefts = [chip.x() for chip in row.chips]
    assert lefts == sorted(lefts)
    # A new one is scrolled to, and the wheel scrolls sideways.
    bar, view = row.horizontalScrollBar(), row.viewport()
    assert view.rect().contains(row.chips[-1].mapTo(view, row.chips[-1].rect().center()))
    assert bar.value() == bar.maximum()
    at, still, none = QPointF(50, 20), QPoint(), Qt.MouseButton.NoButton
    turned, begins = QPoint(0, 120), Qt.ScrollPhase.NoScrollPhase
    held = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(view, QWheelEvent(at, at, still, turned, none, held, begins, False))
    assert 0 < bar.value() < bar.maximum()


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


def test_files_are_attached_or_dropped_and_others_refused(composer: Composer, tmp_path: Path) -> None:
    refused: list[RequestError] = []
    composer.attach_failed.connect(refused.append)
    text, picture = tmp_path / "berths.txt", tmp_path / "picture.png"
    text.write_bytes("\ufeffnorth,1\r\nsouth,2\r\n".encode())
    picture.write_bytes(b"\x89PNG\xff\xfe")
    composer.attach_files([text, picture, tmp_path / "nowhere.txt"])
    (error,) = refused
    assert error.message == "2 files were not attached."
    for said in ("“picture.png” is a picture.", "“nowhere.txt” is not a file."):
        assert said in error.hint
    composer.attach_files([picture])
    assert refused[1].message == "“picture.png” is a picture."
    assert composer.text == ""
    (tmp_path / "notes.txt").write_text("notes")
    drop(composer, tmp_path / "notes.txt")
    assert composer.attachments == (
        Attachment("berths.txt", "north,1\nsouth,2\n"),
        Attachment("notes.txt", "notes"),
    )


def test_the_pill_is_hidden_until_the_context_is_known(composer: Composer) -> None:
    pill = composer.pill

    def ring() -> set[str]:
        image = pill.grab().toImage()
        return {image.pixelColor(x, y).name() for x in range(7, 21) for y in range(24)}

    assert pill.isHidden()
    pill.show_context(ContextUse(6000, 200, 14, 32768))
    assert pill.isVisible()
    assert not pill.near_limit
    assert pill.accessibleName() == "Context: 6,214 of 32,768 tokens"
    assert pill.accessibleDescription().split("\n") == [
        "This chat, with system prompt and template: 6,000 tokens",
        "Attached documents: 200 tokens",
        "Typed text: 14 tokens",
    ]
    assert theme.color("accent").name() in ring()
    pill.show_context(ContextUse(30_000, 502, 0, 32_768))
    assert pill.near_limit
    assert theme.color("series_vermilion").name() in ring()
    assert theme.color("accent").name() not in ring()
    # Any part that is estimated marks its own figure and the sum; without a model there is no limit.
    for part in ("chat_exact", "documents_exact", "typed_exact"):
        pill.show_context(ContextUse(6000, 200, 14, 32768, **{part: False}))
        assert pill.text == "~6,214 of 32,768 tokens"
        assert pill.accessibleDescription().count("~") == 2  # the part, and what “~” means
    pill.show_context(ContextUse(0, 200, 0, 0, documents_exact=False))
    assert pill.text == "~200 tokens"
    pill.show_context(ContextUse())
    assert pill.isHidden()


def test_tab_goes_from_the_text_through_the_buttons_which_have_names(
    qtbot: QtBot, composer: Composer
) -> None:
    composer.attach(Attachment("a.txt", "A"))
    composer.edit.setFocus()
    seen: list[QWidget] = []
    while (focus := QApplication.focusWidget()) not in seen:
        seen.append(focus)
        assert focus.accessibleName()
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    assert seen[0] is composer.edit
    assert {composer.send_button, *composer.chips.chips} < set(seen)
    assert composer.chips.chips[0].remove_button.accessibleName()


def test_pasted_text_is_named_by_its_first_line(qtbot: QtBot, composer: Composer) -> None:
    for begins, name in (
        ("\n## Harbour rules\n\nA vessel", "Harbour rules"),
        (
            "A vessel that enters after dusk shows two white lights, and waits",
            "A vessel that enters after dusk shows…",
        ),
        ("***\n \n", "Pasted text"),
        (DOCUMENT, NAME),
        (DOCUMENT, f"{NAME} 2"),
    ):
        paste(qtbot, composer, begins + "\n " * 5_000)
        assert composer.attachments[-1].name == name


def test_a_paste_of_fewer_tokens_than_a_document_stays_in_the_text(qtbot: QtBot, composer: Composer) -> None:
    """About four letters are a token, and one that is written without spaces is one alone."""
    for text, is_long in (("word " * 1_500, False), ("word " * 1_700, True), ("字" * 1_900, False)):
        composer.clear()
        paste(qtbot, composer, text)
        assert (composer.text, len(composer.attachments)) == ("" if is_long else text, int(is_long))


def test_command_return_sends_if_that_is_wanted(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    composer.edit.send_keys = "command_return"
    qtbot.keyClicks(composer.edit, "One")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    qtbot.keyClicks(composer.edit, "Two")
    assert messages == []
    assert composer.text == "One\nTwo"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, CTRL)
    assert messages == [Message("user", "One\nTwo")]
    composer.edit.send_keys = "return"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, CTRL)
    assert len(messages) == 1
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert len(messages) == 2


# ---- files that take long


@pytest.fixture
def slow_pdf(tmp_path: Path) -> Path:
    file = tmp_path / "handbook.pdf"
    file.write_bytes(pdf_of(["North quay", "South quay"]))
    return file


def test_a_pdf_is_read_beside_the_window(qtbot: QtBot, composer: Composer, slow_pdf: Path) -> None:
    messages = sent(composer)
    composer.set_text("What is it?")
    composer.attach_files([slow_pdf])
    (chip,) = composer.chips.files
    assert chip.isVisible()
    assert chip.remove_button.accessibleName() == "Stop reading handbook.pdf"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == []
    assert composer.send_button.accessibleDescription() == "“handbook.pdf” is still being read."
    qtbot.waitUntil(lambda: bool(composer.attachments), timeout=20_000)
    assert composer.attachments == (Attachment("handbook.pdf", "North quay\n\nSouth quay", pages=(0, 12)),)
    assert composer.chips.files == ()
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert len(messages) == 1


@pytest.fixture
def long_pdf(tmp_path: Path) -> Path:
    file = tmp_path / "long.pdf"
    file.write_bytes(pdf_of(["Quay) Tj (" * 2000 + str(page) for page in range(300)]))
    return file


def test_a_reading_shows_its_page_and_can_be_given_up(
    qtbot: QtBot, composer: Composer, long_pdf: Path
) -> None:
    def children() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    before = children() if os.path.isdir("/proc/self") else set()
    composer.attach_files([long_pdf])
    (chip,) = composer.chips.files
    assert chip.note == "Reading"
    qtbot.waitUntil(lambda: chip.note.endswith(" of 300"), timeout=60_000)
    qtbot.mouseClick(chip.remove_button, Qt.MouseButton.LeftButton)
    assert composer.chips.files == ()
    if before:
        qtbot.waitUntil(lambda: children() <= before, timeout=60_000)
    qtbot.wait(80)
    assert composer.attachments == ()


def test_a_refused_file_among_others_keeps_them(
    qtbot: QtBot, composer: Composer, slow_pdf: Path, tmp_path: Path
) -> None:
    refused: list[RequestError] = []
    composer.attach_failed.connect(refused.append)
    broken, text = tmp_path / "broken.pdf", tmp_path / "notes.txt"
    broken.write_bytes(b"%PDF-1.7\nnothing more")
    text.write_text("notes")
    composer.attach_files([broken, slow_pdf, text])
    qtbot.waitUntil(lambda: len(refused) == 1, timeout=20_000)
    assert refused[0].message == "“broken.pdf” is damaged, or not a valid PDF file."
    assert [attachment.name for attachment in composer.attachments] == ["handbook.pdf", "notes.txt"]


def test_a_chip_opens_its_document_by_mouse_and_key(qtbot: QtBot, composer: Composer) -> None:
    composer.attach(Attachment("berths.csv", "north,1"))
    composer.attach(Attachment("long.txt", "x"))
    intents = intents_of(composer)
    first, second = composer.chips.chips
    qtbot.mouseClick(first, Qt.MouseButton.LeftButton)
    qtbot.keyClick(second, Qt.Key.Key_Return)
    qtbot.keyClick(first, Qt.Key.Key_Space)
    assert intents == [OpenAttachment("", 0), OpenAttachment("", 1), OpenAttachment("", 0)]
    qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert intents[-1] == Escape()
    qtbot.keyClick(first, Qt.Key.Key_Delete)
    assert [each.name for each in composer.attachments] == ["long.txt"]


# ---- what does not fit


def buttons(composer: Composer) -> dict[str, Button]:
    return {button.text(): button for button in composer.notice.buttons}


def test_what_is_too_long_says_so_and_offers_ways(qtbot: QtBot, composer: Composer) -> None:
    hidden = (LeftOut("hidden row", 2, "S, rows 3 to 4"),)
    small = Attachment("berths.csv", "b " * 100)
    large = Attachment("handbook.txt", "word " * 9000, left_out=hidden)
    composer.attach(small)
    composer.attach(large)
    composer.chips.show_tokens(lambda text: {small.text: 100, large.text: 9000}.get(text))
    composer.show_fit(MessageSize(500, 10, (100, 9000), 8192))
    assert composer.notice.isVisible()
    assert composer.notice.text == "1,419 tokens over this model’s limit of 8,192."
    assert list(buttons(composer)) == [
        "Continue in New Chat",
        "Keep about the first 6,500 tokens of handbook.txt",
        "Remove handbook.txt (9,000 tokens)",
    ]
    intents = intents_of(composer)
    qtbot.mouseClick(buttons(composer)["Continue in New Chat"], Qt.MouseButton.LeftButton)
    assert intents == [MoveToNewChat()]
    removed: list[Attachment] = []  # whose vectors are erased
    composer.attachment_removed.connect(removed.append)
    shorten = buttons(composer)["Keep about the first 6,500 tokens of handbook.txt"]
    for _ in range(2):  # a double click
        qtbot.mouseClick(shorten, Qt.MouseButton.LeftButton)
    first, second = composer.attachments
    assert first.name == "berths.csv"
    assert second.name == "handbook.txt (beginning)"
    assert 0.71 < len(second.text) / len(large.text) < 0.74
    assert second.text.endswith("word")
    assert second.left_out == hidden
    assert [each.name for each in removed] == ["handbook.txt"]
    composer.show_fit(MessageSize(500, 10, (100, 6557), 8192))
    assert composer.notice.isHidden()
    composer.show_fit(MessageSize(7000, 10, (100, 6557), 8192))
    remove = buttons(composer)["Remove handbook.txt (beginning) (6,557 tokens)"]
    for _ in range(2):
        qtbot.mouseClick(remove, Qt.MouseButton.LeftButton)
    assert composer.attachments == (replace(small, tokens=100),)
    assert removed[1:] == [replace(second, tokens=0)]


def test_half_a_character_can_be_sent(qtbot: QtBot, composer: Composer) -> None:
    messages = sent(composer)
    # A file's name that is no text in the file system's own encoding looks like this.
    composer.attach(Attachment("caf\udce9.txt", "half: \ud83d."))
    composer.set_text("whole 😀")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert messages == [Message("user", "whole 😀", (Attachment("caf\ufffd.txt", "half: \ufffd."),))]


def test_it_can_be_destroyed_while_its_field_has_the_focus(qtbot: QtBot) -> None:
    host = QWidget()
    qtbot.addWidget(host)
    dying = Composer(host)
    with qtbot.waitExposed(host):
        host.show()
    host.activateWindow()
    dying.edit.setFocus()
    qtbot.waitUntil(dying.edit.hasFocus)
    with capture_exceptions() as raised:
        delete(dying)
    assert not raised


def test_a_guessed_encoding_is_named_and_another_can_be_chosen(composer: Composer, tmp_path: Path) -> None:
    file, sure = tmp_path / "menu.txt", tmp_path / "sure.txt"
    file.write_bytes("naïve café".encode("cp1252"))
    sure.write_text("naïve café")
    for each in (file, sure):
        composer.attach_files([each])
    chip, certain = composer.chips.chips
    assert "?" not in certain.note
    assert certain.encoding_menu() is None
    assert chip.note.endswith(", Windows Central European?")
    names = {action.text(): action for action in chip.encoding_menu().actions()}
    names["Read as Windows Western"].trigger()
    (other,) = (each for each in composer.chips.chips if each is not certain)
    assert other.attachment.text == "naïve café"
    assert other.note.endswith(", Windows Western?")
    again = [action.text() for action in other.encoding_menu().actions()]
    assert "Read as Windows Central European" in again


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["html", "large", "csv", "folder"])
def test_any_kind_and_size_of_text_can_be_read_in_another_encoding(
    qtbot: QtBot, composer: Composer, tmp_path: Path, kind: str
) -> None:
    words = "naïve café" if kind != "html" else "<p>naïve café</p>"
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / {"html": "menu.html", "csv": "menu.csv"}.get(kind, "menu.txt")
    file.write_bytes(words.encode("cp1252") + b"\n1,2" * (QUICK_BYTES // 4 if kind == "large" else 1))
    composer.attach_files([folder if kind == "folder" else file])
    qtbot.waitUntil(lambda: bool(composer.chips.chips), timeout=60_000)
    (chip,) = composer.chips.chips
    first, note = chip.attachment.text, chip.note
    assert note.endswith("?")
    menu = chip.encoding_menu()
    action = menu.actions()[0]
    chosen = action.text().removeprefix("Read as ")
    action.trigger()
    qtbot.waitUntil(lambda: composer.chips.chips[0] is not chip, timeout=60_000)
    (other,) = composer.chips.chips
    assert len(other.attachment.text) == len(first)
    assert other.attachment.text != first
    assert other.note.endswith(f", {chosen}?")
    again = other.encoding_menu()
    before = note.rpartition(", ")[2].rstrip("?")
    assert f"Read as {before}" in [action.text() for action in again.actions()]


@pytest.mark.sweep
def test_the_encoding_chosen_last_is_used(qtbot: QtBot, composer: Composer, tmp_path: Path) -> None:
    file = tmp_path / "menu.txt"
    file.write_bytes("naïve café".encode("cp1252") + b"\n1,2" * (QUICK_BYTES // 4))
    composer.attach_files([file])
    qtbot.waitUntil(lambda: bool(composer.chips.chips), timeout=60_000)
    (chip,) = composer.chips.chips
    menu = chip.encoding_menu()
    first, last, *_ = menu.actions()
    chosen = last.text().removeprefix("Read as ")
    first.trigger()
    last.trigger()
    qtbot.waitUntil(lambda: composer.chips.chips[0] is not chip, timeout=60_000)
    assert composer.chips.chips[0].note.endswith(f", {chosen}?")


def test_a_file_that_is_gone_when_its_encoding_is_chosen_stays_as_it_was(
    qtbot: QtBot, composer: Composer, tmp_path: Path
) -> None:
    file = tmp_path / "menu.html"
    file.write_bytes("<p>naïve café</p>".encode("cp1252"))
    composer.attach_files([file])
    qtbot.waitUntil(lambda: bool(composer.chips.chips), timeout=60_000)
    (chip,) = composer.chips.chips
    before = chip.attachment, chip.note
    menu = chip.encoding_menu()
    file.write_bytes(b"\0\1\2\3" * 100)
    with qtbot.waitSignal(composer.attach_failed, timeout=60_000):
        menu.actions()[0].trigger()
    assert (composer.chips.chips[0].attachment, composer.chips.chips[0].note) == before


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("one", "> one"),
        ("one\n\n  two\n", "> one\n>\n>   two"),
        ("\n- a\n- b", "> - a\n> - b"),
        ("> said", "> > said"),
    ],
)
def test_each_line_is_marked(text: str, quoted: str) -> None:
    assert quote_lines(text) == quoted


def test_a_quote_is_a_paragraph_of_its_own_and_writing_goes_on_below(composer: Composer) -> None:
    for written, cursor, expected in (
        ("", 0, "> q\n\n|"),
        ("Why?", 4, "Why?\n\n> q\n\n|"),
        ("Why?\n", 5, "Why?\n\n> q\n\n|"),
        ("ab", 1, "a\n\n> q\n\n|\n\nb"),
        ("\nb", 0, "> q\n\n|\nb"),
        ("😀a\nb", 3, "😀a\n\n> q\n\n|\nb"),
    ):
        composer.set_text(written)
        place = composer.edit.textCursor()
        place.setPosition(cursor)
        composer.edit.setTextCursor(place)
        composer.quote("q")
        at = len(composer.edit.text_before_cursor)
        assert f"{composer.text[:at]}|{composer.text[at:]}" == expected
        composer.edit.undo()
        assert composer.text == written
    composer.set_text("")
    composer.quote("a line\n" * 5_000)  # as long as a document, it comes along as one
    composer.quote(" \n")
    assert composer.text == ""
    assert [each.name for each in composer.attachments] == ["Quoted text"]


@pytest.mark.parametrize(
    ("html", "plain", "left"),
    [
        ("<p>Words <img src='a.png' width=300> and <IMG alt='b' src=b.png></p>", "Words and", 2),
        ("<p>Words <img src='smile.png' width='20' height='20'></p>", "Words", 0),
        ("<p>Words <img width='100%' src='wide.png'></p>", "Words", 1),
        ("<p>No <imgs src=a> here</p>", "No", 0),
        ("", "Notes \ufffc and \ufffc", 2),
    ],
)
def test_images_between_pasted_words_are_not_dropped_unnoticed(
    composer: Composer, html: str, plain: str, left: int
) -> None:
    told: list[RequestError] = []
    composer.attach_failed.connect(told.append)
    data = QMimeData()
    data.setText(plain)
    if html:
        data.setHtml(html)
    composer.edit.insertFromMimeData(data)
    assert composer.text == plain
    count = "image" if left == 1 else f"{left} images"
    assert [error.message for error in told] == (
        [f"The text was pasted without its {count}."] if left else []
    )


def test_a_chip_is_dragged_to_another_place_and_not_opened_by_that(composer: Composer) -> None:
    opened: list[object] = []
    composer.intent.connect(opened.append)
    for name in "abc":
        composer.attach(Attachment(f"{name}.txt", f"Text {name}"))
    chip = composer.chips.chips[0]
    start = chip.rect().center()
    QTest.mousePress(chip, Qt.MouseButton.LeftButton, pos=start)
    for _ in range(4):  # beyond its end, wherever it is by now
        QTest.mouseMove(chip, QPoint(2 * chip.width(), start.y()))
    QTest.mouseRelease(chip, Qt.MouseButton.LeftButton, pos=start)  # the chip is below the mouse again
    assert [each.name for each in composer.attachments] == ["b.txt", "c.txt", "a.txt"]
    assert opened == []
    QTest.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert [type(each) for each in opened] == [OpenAttachment]
