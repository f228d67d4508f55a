"""Finding in a chat: all matches, in what is seen, also in answers that were never on the screen."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.chat.find import Find
from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from app.richtext.markdown.markdown import parse_block
from app.richtext.selection import Match, matches_in
from core.events import Message
from tests.app.chat.watching import colour, colours, picture, stream
from tests.app.chat.written import finished, tokens_of, turns_of


def test_matches_are_in_what_is_seen() -> None:
    source = "**three** conditions, `a*b`\n\nThree\nCONDITIONS [x](https://three.org)\n"
    pieces = parse_block(source, 0, len(source))
    assert matches_in(pieces, "three conditions") == (Match(0, 0, 16), Match(1, 0, 16))
    assert matches_in(pieces, "A*B") == (Match(0, 18, 21),)
    assert matches_in(pieces, "three.org") == ()
    assert matches_in(pieces, "  ") == ()


def test_an_empty_search_finds_nothing() -> None:
    find = Find()
    find.start("", (), 0)
    assert find.search_step()
    find.step(True)
    assert (find.count, find.number, find.current) == (0, 0, None)


def test_all_matches_of_a_long_chat_are_counted_and_walked(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(turns_of(30))
    finder = transcript.finder
    finder.open()
    assert finder.bar.field.hasFocus()
    qtbot.keyClicks(finder.bar.field, "Question 1")
    qtbot.waitUntil(lambda: finder.bar.count.text() == "1 of 11", timeout=20_000)
    visited = []
    for _ in range(11):
        seen = [each for each in transcript.findChildren(UserMessage) if not each.visibleRegion().isEmpty()]
        visited.append({each.body.accessibleDescription() for each in seen})
        qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return)
    for number, seen in zip((1, *range(10, 20)), visited, strict=True):
        assert [each for each in seen if each.startswith(f"Question {number}:")], (number, seen)
    assert finder.bar.count.text() == "1 of 11"
    qtbot.keyClick(finder.bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert finder.bar.count.text() == "11 of 11"


def test_matches_are_marked_until_the_bar_closes(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "A question about berths"))
    stream(transcript, "The berth is free. No other berth is.")
    transcript.finish_answer("t", finished())
    body = transcript.answer("t")
    body.body.setFocus()
    plain = picture(transcript)
    transcript.finder.open()
    qtbot.keyClicks(transcript.finder.bar.field, "berth")
    qtbot.waitUntil(lambda: transcript.finder.bar.count.text() == "1 of 3", timeout=20_000)
    assert picture(transcript) != plain
    question = transcript.findChild(UserMessage)
    assert colour("accent") in colours(picture(question))
    qtbot.keyClick(transcript.finder.bar.field, Qt.Key.Key_Escape)
    assert not transcript.finder.is_open
    assert body.body.hasFocus()
    assert picture(transcript) == plain


def test_closing_returns_the_focus_also_if_its_widget_is_gone(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.show_turns(turns_of(3))
    margins, body = transcript.viewportMargins(), transcript.answer("t2").body
    body.setFocus()
    transcript.finder.open()
    transcript.clear()
    qtbot.waitUntil(lambda: not isValid(body), timeout=60_000)
    transcript.finder.forget()
    assert transcript.viewportMargins() == margins
    assert transcript.hasFocus()


def test_nothing_found_is_said(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t", Message("user", "A question"))
    transcript.finder.open()
    qtbot.keyClicks(transcript.finder.bar.field, "zebra")
    qtbot.waitUntil(lambda: transcript.finder.bar.count.text() == "No matches", timeout=20_000)
    assert not transcript.finder.bar.next.isEnabled()


def test_what_is_written_meanwhile_is_found_too(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.finder.open()
    qtbot.keyClicks(transcript.finder.bar.field, "berth")
    stream(transcript, "A berth")
    qtbot.waitUntil(lambda: transcript.finder.bar.count.text() == "1 of 1", timeout=20_000)
    transcript.append_tokens("t", tokens_of(" and a berth"))
    qtbot.waitUntil(lambda: transcript.finder.bar.count.text() == "1 of 2", timeout=20_000)
    transcript.clear()
    qtbot.waitUntil(lambda: transcript.finder.bar.count.text() == "No matches", timeout=20_000)


def test_a_match_in_a_folded_thought_unfolds_it(transcript: Transcript, qtbot: QtBot) -> None:
    stream(transcript, "<think>\nA zebra.\n</think>\n\nYes.")
    transcript.finish_answer("t", finished())
    transcript.finder.open()
    qtbot.keyClicks(transcript.finder.bar.field, "zebra")
    qtbot.waitUntil(lambda: transcript.finder.bar.count.text() == "1 of 1", timeout=20_000)
    item = transcript.answer("t")
    assert [box.piece.text for box in item.body.boxes if not box.hidden] == ["", "A zebra.", "Yes."]
