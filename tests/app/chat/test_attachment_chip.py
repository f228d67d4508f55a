"""Chips of attachments: names and tooltips in the direction of their own text."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.attachment_chip import AttachmentChip
from app.controls.shapes import in_own_direction
from app.theme.theme import Theme
from core.events import Attachment
from tests.app.painted import noted_words

HEBREW = "\u05d3\u05d5\u05d7 2024-117 (\u05e1\u05d5\u05e4\u05d9).md"


@pytest.mark.parametrize(("name", "from_right"), [("a (b).md", False), (HEBREW, True)])
def test_a_name_begins_at_the_side_its_text_is_read_from(
    theme: Theme, qtbot: QtBot, name: str, from_right: bool
) -> None:
    chip = AttachmentChip(theme, Attachment(name=name, text="word " * 40), print)
    qtbot.addWidget(chip)
    chip.resize(300, chip.height())
    with noted_words() as words:
        chip.grab()
    [shown] = [word.area for word in words if word.text == name]
    [note] = [word.area for word in words if word.text == chip.size_text]
    if from_right:
        assert shown.right() > chip.remove_button.x() - 10
    else:
        assert shown.left() == pytest.approx(note.left(), abs=2)


def test_a_tooltip_isolates_the_lines_that_go_from_right_to_left(theme: Theme, qtbot: QtBot) -> None:
    chip = AttachmentChip(theme, Attachment(name=HEBREW, text="word"), print)
    qtbot.addWidget(chip)
    assert chip.toolTip() == f"\u2068{HEBREW}\u2069\n{chip.size_text}"
    assert f"\u2068{HEBREW}\u2069" in chip.remove_button.toolTip()
    assert "\u2068" not in chip.remove_button.accessibleName()
    assert in_own_direction("plain\nlines") == "plain\nlines"
