"""Token counts of a message: estimates, whether it fits, remedies; chips of attachments."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip, estimated_tokens, size_words
from app.chat.composer_edit import is_document
from app.chat.composer_tools import MessageSize, Remedy, beginning, remedies
from app.controls.shapes import in_own_direction
from core.events import Attachment
from tests.app.painted import noted_words


@pytest.mark.parametrize(
    ("size", "over", "offered"),
    [
        (MessageSize(100, 50, (7000,), 8192), 0, ()),
        (MessageSize(100, 50, (8041,), 8192), 0, ()),
        (MessageSize(100, 50, (8042,), 8192), 1, None),
        # Nothing is written, or nothing is known.
        (MessageSize(9000, 0, (), 8192), 0, ()),
        (MessageSize(0, 9000, (), 0), 0, ()),
        (MessageSize(0, None, (None,), 8192), 0, ()),
        # A full chat is left for a new one; the largest attachment is cut or removed.
        (MessageSize(8000, 300, (), 8192), 109, (Remedy("new_chat"),)),
        (
            MessageSize(0, 10, (2000, None, 7000), 8192),
            819,
            (Remedy("shorten", 2, 7000 - 819 - 1024), Remedy("remove", 2, 7000)),
        ),
        # Another chat has no more room than a new one, whose prompt is the template's.
        (MessageSize(30, 9000, (), 8192, is_new=True), 839, ()),
        # A beginning too short to matter is not offered.
        (MessageSize(0, 8100, (400,), 8192), 309, (Remedy("remove", 0, 400),)),
    ],
)
def test_what_does_not_fit_has_remedies(
    size: MessageSize, over: int, offered: tuple[Remedy, ...] | None
) -> None:
    assert size.over_tokens == over
    assert offered is None or remedies(size) == offered


def test_the_worker_knows_better() -> None:
    written = MessageSize(0, 10, (8000,), 8192)
    assert remedies(written) == ()
    assert remedies(written, 90) == (Remedy("shorten", 0, 8000 - 90 - 1024), Remedy("remove", 0, 8000))


def test_a_beginning_ends_with_a_whole_line_or_word() -> None:
    lines = "one two three\n" * 100
    assert beginning(lines, 300, 150) == ("one two three\n" * 50).rstrip()
    assert beginning("word " * 100, 100, 33).endswith("word")
    assert len(beginning("x" * 1000, 1000, 100)) == 100


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word " * 400, 500),
        ("霧" * 400, 400),
        ("word " * 400_000, 500_000),
        ("word " * 40_000 + "霧" * 200_000 + "word " * 40_000, 300_000),
    ],
)
def test_estimates_know_writing_without_spaces_and_look_into_long_texts(text: str, tokens: int) -> None:
    estimate = estimated_tokens(text)
    assert estimate == tokens if len(text) < 10_000 else abs(estimate - tokens) < 0.25 * tokens


@pytest.mark.parametrize(("tokens", "is_one"), [(2_000, False), (2_001, True)])
def test_a_pasted_text_of_more_than_2000_tokens_is_a_document(tokens: int, is_one: bool) -> None:
    text = "x" * 4 * tokens
    assert estimated_tokens(text) == tokens
    assert is_document(text) is is_one


@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        (Attachment("a", "word " * 400, 411), "411 tokens"),
        (Attachment("a", "x", 1), "1 token"),
        (Attachment("a", "x" * 12_345), "~3,100 tokens"),
        (Attachment("a", "x" * 150), "~38 tokens"),
    ],
)
def test_what_was_counted_is_exact_and_the_rest_is_not(attachment: Attachment, words: str) -> None:
    assert size_words(attachment) == words


HEBREW = "\u05d3\u05d5\u05d7 2024-117 (\u05e1\u05d5\u05e4\u05d9).md"


@pytest.mark.parametrize(("name", "from_right"), [("a (b).md", False), (HEBREW, True)])
def test_a_name_begins_at_the_side_its_text_is_read_from(qtbot: QtBot, name: str, from_right: bool) -> None:
    chip = AttachmentChip(Attachment(name=name, text="word " * 40), print)
    qtbot.addWidget(chip)
    chip.resize(300, chip.height())
    with noted_words() as words:
        chip.grab()
    [shown] = [word.area for word in words if word.text == name]
    [note] = [word.area for word in words if word.text == chip.note]
    if from_right:
        assert shown.right() > chip.remove_button.x() - 10
    else:
        assert shown.left() == pytest.approx(note.left(), abs=2)


def test_a_tooltip_isolates_the_lines_that_go_from_right_to_left(qtbot: QtBot) -> None:
    chip = AttachmentChip(Attachment(name=HEBREW, text="word"), print)
    qtbot.addWidget(chip)
    assert chip.toolTip() == f"\u2068{HEBREW}\u2069\n{chip.note}"
    assert f"\u2068{HEBREW}\u2069" in chip.remove_button.toolTip()
    assert "\u2068" not in chip.remove_button.accessibleName()
    assert in_own_direction("plain\nlines") == "plain\nlines"


def test_the_name_on_a_button_is_whole_up_to_the_length_of_one_that_is_cut() -> None:
    names = [("0123456789" * 4)[:length] for length in range(1, 40)]
    longest = max(len(strings.short(name)) for name in names)
    for name in names:
        assert (strings.short(name) == name) == (len(name) <= longest)
        assert strings.short(name)[-9:] == name[-9:]
