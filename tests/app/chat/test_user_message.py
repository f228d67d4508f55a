"""Messages and their attachments."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.entry_column import COLUMN_PX
from app.chat.intents import Intent, OpenAttachment, OpenPassage
from app.chat.transcript import Transcript
from app.chat.user_message import MessageChip, UserMessage
from app.richtext.text_canvas import MARGIN_PX
from app.theme.theme import Theme
from core.events import Attachment, Message, Passage


def test_a_message_with_attachments(transcript: Transcript, qtbot: QtBot) -> None:
    attached = (Attachment("Handbook", "x" * 4000), Attachment("a.txt", "one"), HANDBOOK)
    transcript.add_user("t", Message("user", "What is it about?", attached[:1]))
    item = transcript.findChild(UserMessage)
    transcript.add_user("u", Message("user", "", attached))
    alone = transcript.findChildren(UserMessage)[-1]
    assert item.height_for(COLUMN_PX) > 48 < alone.height_for(COLUMN_PX)
    assert [chip.note for chip in alone.chips] == ["~1,000 tokens", "~1 token", "28,020 tokens"]
    assert not item.copy_button.is_revealed
    qtbot.mouseClick(item.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "What is it about?"
    assert item.copy_button.is_revealed


def test_a_long_message_wraps_inside_its_bubble(transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "word " * 100))
    item = transcript.findChild(UserMessage)
    assert item.body.width() <= 560
    assert item.height() > 100
    transcript.add_user("u", Message("user", "Why?\n\n```\nx = 1\n```"))
    code = transcript.findChildren(UserMessage)[-1]
    assert code.body.width() > item.body.width() / 2  # code has all the room there is
    for message in (item, code):
        for button in (message.copy_button, message.edit_button):
            assert abs(button.geometry().center().y() - message.body.geometry().center().y()) <= 1


HANDBOOK = Attachment("handbook.pdf", "words " * 100, 28_020)
PASSAGES = tuple(Passage(32 * n, 32 * n + 32, n % 5 == 0, 0.5) for n in range(100))


def test_what_was_read_of_it_is_drawn_and_said(qtbot: QtBot, theme: Theme) -> None:
    chip = MessageChip(HANDBOOK)
    qtbot.addWidget(chip)
    plain_px = chip.sizeHint().width()
    chip.show_passages(PASSAGES)
    assert chip.note == "28,020 tokens · read 20%"
    assert chip.accessibleDescription() == chip.note
    assert chip.sizeHint().width() > plain_px + 100
    chip.resize(chip.sizeHint())
    image = chip.grab().toImage()
    row = {image.pixelColor(x, 24).name() for x in range(chip.width() - 190, chip.width() - 15)}
    assert theme.color("accent").name() in row


def test_it_opens_by_mouse_and_key(qtbot: QtBot, transcript: Transcript) -> None:
    intents: list[Intent] = []
    transcript.intent.connect(intents.append)
    transcript.add_user("t1", Message("user", "Both?", (Attachment("a.txt", "A"), HANDBOOK)))
    (message,) = transcript.findChildren(UserMessage)
    first, second = message.chips
    qtbot.mouseClick(second, Qt.MouseButton.LeftButton)
    qtbot.keyClick(first, Qt.Key.Key_Return)
    qtbot.keyClick(first, Qt.Key.Key_Space)
    assert intents == [OpenAttachment("t1", 1), OpenAttachment("t1", 0), OpenAttachment("t1", 0)]
    transcript.show_passages("t1", 1, PASSAGES)
    assert second.note == "28,020 tokens · read 20%"
    assert second.geometry().right() == first.geometry().right()


def test_many_attachments_are_one_row_that_unfolds(qtbot: QtBot, transcript: Transcript) -> None:
    many = tuple(Attachment(f"rule {number}.txt", "A") for number in range(7))
    transcript.add_user("t1", Message("user", "Which?", many))
    (message,) = transcript.findChildren(UserMessage)
    column = message.width() - 2 * MARGIN_PX
    folded_px = message.height_for(column)
    assert message.fold_button.text() == "Show 7 Attachments"
    assert all(chip.isHidden() for chip in message.chips)
    message.fold_button.click()
    assert message.fold_button.text() == "Hide 7 Attachments"
    assert message.height_for(column) == message.height() == folded_px + 7 * (48 + 6)
    assert all(chip.isVisible() for chip in message.chips)
    assert message.chips[-1].geometry().bottom() < message.body.y()
    message.fold_button.click()
    assert message.height() == folded_px


def test_a_click_on_the_map_opens_the_passage_there(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "What?", (HANDBOOK,)))
    transcript.show_passages("t", 0, PASSAGES)
    (chip,) = transcript.findChildren(MessageChip)
    intents: list[Intent] = []
    transcript.intent.connect(intents.append)
    for place, number in ((0.1, 10), (0.5, 50), (0.9, 90)):
        at = chip.map.mapTo(chip, QPoint(round(place * chip.map.width()), chip.map.height() // 2))
        qtbot.mouseClick(chip, Qt.MouseButton.LeftButton, pos=at)
        opened, passage = intents
        assert opened == OpenAttachment("t", 0)
        assert isinstance(passage, OpenPassage)
        assert abs(passage.passage.start // 32 - number) <= 1
        intents.clear()
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton, pos=QPoint(20, 20))
    qtbot.keyClick(chip, Qt.Key.Key_Space)
    assert intents == [OpenAttachment("t", 0)] * 2


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        ("Is **this** a *star*?", ["Is this a star?"]),
        ("See [the docs](https://a.example) and `x = 1`", ["See the docs and x = 1"]),
        ("Buy:\n\n- bread\n- milk\n\nthen come", ["Buy:", "bread", "milk", "then come"]),
        ("> He said so.\n\nIs it true?", ["He said so.", "Is it true?"]),
        ("a **b**\nc", ["a b\nc"]),  # its lines stay
        # What people write without meaning marks.
        ("What are __init__ and snake_case_name?", ["What are __init__ and snake_case_name?"]),
        ("5 * 3 * 2 = 30", ["5 * 3 * 2 = 30"]),
        ("# 1 in line\n| a | b |", ["# 1 in line\n| a | b |"]),
        ("C:\\*.txt", ["C:\\*.txt"]),
    ],
)
def test_marks_in_a_message_are_shown_as_in_an_answer(
    transcript: Transcript, qtbot: QtBot, written: str, texts: list[str]
) -> None:
    transcript.add_user("t", Message("user", written))
    item = transcript.findChild(UserMessage)
    assert [box.piece.text for box in item.body.boxes] == texts
    qtbot.mouseClick(item.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == written


def test_a_list_in_a_message_is_inside_its_bubble(transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "- a longer point of a list\n- b"))
    item = transcript.findChild(UserMessage)
    for box in item.body.boxes:
        assert len(box.layout.lines) == 1
        assert box.text_left + box.layout.lines[0].right <= item.body.width() - 2 * MARGIN_PX + 1


LONG = {
    "letters": "a" * 200_000,
    "words": "word " * 40_000,
    "lines": "a line\n" * 30_000,
    "short": "a\n" * 500,
}


@pytest.mark.parametrize("kind", LONG)
def test_a_long_message_is_folded_and_copied_as_a_whole(
    qtbot: QtBot, transcript: Transcript, kind: str
) -> None:
    content = LONG[kind]
    transcript.add_user("t", Message("user", content))
    transcript.add_user("u", Message("user", "after it"))
    message = transcript.findChildren(UserMessage)[0]
    button = message.more_button
    assert button.isVisible()
    assert button.text() == f"Show More of {len(content):,} Characters"
    folded, height = message.body.readable_text, message.height()
    assert content.startswith(folded)
    assert len(folded) <= 4_000
    assert folded.count("\n") < 80
    assert message.rect().contains(button.geometry())
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    unfolded = message.body.readable_text
    assert content.startswith(unfolded)
    assert len(folded) < len(unfolded) <= 12_000
    assert unfolded.count("\n") < 300
    qtbot.waitUntil(lambda: message.height() > height)
    assert message.rect().contains(button.geometry())
    assert button.text().startswith("Show Less")
    qtbot.mouseClick(message.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == content
    message.body.select_all()
    assert transcript.selected_text().startswith(content)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: message.height() == height)
    assert message.body.readable_text == folded


def test_a_match_beyond_what_is_shown_is_gone_to(qtbot: QtBot, transcript: Transcript) -> None:
    transcript.add_user("t", Message("user", "word " * 40_000 + "needle"))
    finder = transcript.finder
    finder.open()
    finder.bar.field.setText("needle")
    qtbot.waitUntil(lambda: finder.bar.count.text().startswith("1"), timeout=20_000)
    body = transcript.findChild(UserMessage).body
    low, high = transcript.verticalScrollBar().value(), transcript.viewport().height()
    assert low <= body.mapTo(transcript.widget(), body.rect().bottomLeft()).y() <= low + 2 * high
