"""From the worker's passages to the sentences that a reader is led to, and their numbers in the text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.answer_text import AnswerText
from app.chat.intents import OpenSource
from app.chat.sources import SourceNumber, sources_of
from app.chat.transcript import Transcript
from app.richtext.selection import Match
from app.session.chats.conversation import Answer, Turn
from core.events import Attachment, Citation, Finished, Message, Passage, ReadingMap
from tests.app.chat.watching import colour, colours, enlarged, stream
from tests.app.chat.written import finished, tokens_of

TEXT = (
    "# Harbour\n\nPilots are free of charge for vessels under 20 m. The duty master may waive condition one, "
    "and only\nfor a medical transfer. Vessels pay 14 crowns per night.\n\n- Ropes are checked on Mondays\n"
    "- Lamps are checked on Fridays\n"
)
DOCUMENTS = {0: ("harbour.md", TEXT), 1: ("other.md", "Nothing of it here.")}


def passage(words: str, upto: str = "", kept: bool = True, source: int = 0) -> Passage:
    first = DOCUMENTS[source][1].index(words)
    last = DOCUMENTS[source][1].index(upto or words) + len(upto or words)
    return Passage(0, 32, kept, 1.0, source, first, last)


def test_the_sentence_that_says_it_is_found_whole() -> None:
    """Though the passage begins in the middle of one sentence and ends in the middle of another."""
    given = passage("vessels under 20 m", "Vessels pay 14")
    (found,) = sources_of([given], "Only for a medical transfer may the duty master waive it.", DOCUMENTS)
    assert found.words == "The duty master may waive condition one, and only for a medical transfer."
    assert TEXT[found.first : found.last].endswith("for a medical transfer.")
    assert found.name == "harbour.md"


def test_a_list_item_is_a_sentence() -> None:
    given = passage("Ropes are", "Lamps are checked")
    (found,) = sources_of([given], "The lamps: on Fridays", DOCUMENTS)
    assert found.words == "- Lamps are checked on Fridays"


def test_two_passages_with_one_sentence_are_one_source() -> None:
    first, second = passage("The duty master"), passage("for a medical transfer")
    found = sources_of([first, second], "The duty master, for a medical transfer.", DOCUMENTS)
    assert len(found) == 1


def test_what_was_skipped_or_says_nothing_of_the_answer_is_no_source() -> None:
    given = passage("Vessels pay 14 crowns per night.")
    answer = "It costs 14 crowns per night."
    skipped = ReadingMap("r", "lexical", 99, 9, (passage("Vessels pay", "per night.", kept=False),))
    read = ReadingMap("r", "lexical", 99, 9, (passage("Vessels pay", "per night."),))
    assert sources_of([given], answer, DOCUMENTS, skipped) == ()
    assert len(sources_of([given], answer, DOCUMENTS, read)) == 1
    assert sources_of([given], "Quite another matter!", DOCUMENTS) == ()
    assert sources_of([Passage(0, 9, True, 1.0, 7, 0, 9)], answer, DOCUMENTS) == ()


FERRY_RULES = "The ferry sails at nine. Dogs pay half. In fog the ferry stays. Nothing else is said here."
ANSWER = """The ferry sails at 9. **Dogs pay half.** In fog it does not sail.

- Dogs: half price
- בערפל המעבורת נשארת.

```
The ferry sails at nine.
```
"""
QUESTION = Message("user", "When?", (Attachment("ferry.md", FERRY_RULES),))


def citation(words: str, support: str) -> Citation:
    first = FERRY_RULES.index(support)
    return Citation(ANSWER.index(words) + len(words), 0, first, first + len(support))


NINE, DOGS, FOG = "The ferry sails at nine.", "Dogs pay half.", "In fog the ferry stays."
CITED = (
    citation("sails at 9.", NINE),
    citation("**Dogs pay half.**", DOGS),
    citation("does not sail.", FOG),
    citation("half price", DOGS),
    citation("נשארת.", FOG),
)


def ended(citations: tuple[Citation, ...] = CITED, sources: tuple[Passage, ...] = ()) -> Finished:
    return replace(finished(), citations=citations, sources=sources)


def cited(transcript: Transcript) -> AnswerView:
    """An answer that has ended, and then got its citations."""
    transcript.add_user("t0", QUESTION)
    answer = stream(transcript, ANSWER)
    transcript.finish_answer("t", ended((), (Passage(0, 9, True, 1.0, 0, 0, len(NINE)),)))
    assert not numbers(answer)
    assert len(answer.footer.sources.buttons) == 1
    transcript.cite_answer("t", ended())
    return answer


def numbers(answer: AnswerView) -> list[SourceNumber]:
    found = answer.body.findChildren(SourceNumber)
    return sorted((each for each in found if not each.isHidden()), key=lambda n: (n.y(), n.x()))


def test_each_supported_sentence_has_the_number_of_the_row_below(
    transcript: Transcript, qtbot: QtBot
) -> None:
    answer = cited(transcript)
    found = numbers(answer)
    assert [each.text() for each in found] == ["1", "2", "3", "2", "3"]
    assert [button.text() for button in answer.footer.sources.buttons] == ["1", "2", "3"]
    for each, support in zip(found, (NINE, DOGS, FOG, DOGS, FOG), strict=True):
        assert support in each.toolTip()
        assert support in each.accessibleDescription()
        assert each.accessibleName() == f"Show source {each.text()} in the document"
        with qtbot.waitSignal(transcript.intent) as emitted:
            qtbot.mouseClick(each, Qt.MouseButton.LeftButton)
        (intent,) = emitted.args
        assert isinstance(intent, OpenSource)
        assert (intent.turn_id, FERRY_RULES[intent.source.first : intent.source.last]) == ("t", support)
    assert colour("accent") in colours(enlarged(found[0]))


def test_a_number_is_between_its_sentence_and_the_next(transcript: Transcript) -> None:
    answer = cited(transcript)
    body = answer.body
    box = body.boxes[0]
    for number, words in zip(numbers(answer), ("9.", "half.", "sail.")):
        at = box.piece.text.index(words) + len(words)
        ink = number.geometry()
        (before,) = body.rects_of(0, at - 2, at - 1)
        assert before.right() <= ink.left() + 1
        if at < len(box.piece.text):
            (behind,) = body.rects_of(0, at, at + 1)
            assert ink.right() <= behind.left() + 1
        assert before.top() == ink.top()


@pytest.mark.parametrize("end", [".", "", " ABC.", " (9)."])
def test_a_number_of_right_to_left_text_is_left_of_the_full_stop(transcript: Transcript, end: str) -> None:
    sentence = f"בערפל המעבורת נשארת{end}"
    text = " ".join([sentence] * 9)
    ends = [(n + 1) * len(sentence) + n for n in range(9)]
    transcript.add_user("t0", QUESTION)
    answer = stream(transcript, text)
    transcript.finish_answer("t", ended(tuple(Citation(at, 0, 0, len(NINE)) for at in ends)))
    body = answer.body
    places = [each.geometry() for each in numbers(answer)]
    assert len({place.y() for place in places}) > 1  # at the end of a line as well as in it
    letters = [rect for at in range(len(text)) if text[at] != " " for rect in body.rects_of(0, at, at + 1)]
    for at in ends:
        stop = body.rects_of(0, at - len(sentence), at)[-1]
        after = [
            place for place in places if abs(place.y() - stop.top()) < 2 and place.right() <= stop.left() + 2
        ]
        assert after
    for place in places:
        assert body.rect().contains(place)
        inked = QRectF(place).adjusted(1, 0, -1, 0)
        assert not [letter for letter in letters if inked.intersects(letter)]


def test_a_source_that_has_the_focus_keeps_it(transcript: Transcript, qtbot: QtBot) -> None:
    """When the numbers come, a moment after the answer's end."""
    transcript.add_user("t0", QUESTION)
    answer = stream(transcript, ANSWER)
    transcript.finish_answer("t", ended((), (Passage(0, 9, True, 1.0, 0, 0, len(NINE)),)))
    (button,) = answer.footer.sources.buttons
    button.setFocus()
    assert button.hasFocus()
    transcript.cite_answer("t", ended((CITED[1], CITED[2])))
    assert answer.footer.sources.buttons[0].hasFocus()
    assert DOGS in answer.footer.sources.buttons[0].toolTip()
    with qtbot.waitSignal(transcript.intent) as emitted:
        qtbot.keyClick(answer.footer.sources.buttons[0], Qt.Key.Key_Space)
    assert emitted.args[0].source.words == DOGS
    transcript.cite_answer("t", ended(CITED[1:2]))
    assert [each.text() for each in answer.footer.sources.buttons] == ["1"]


def test_keys_reach_the_numbers_and_open_them(transcript: Transcript, qtbot: QtBot) -> None:
    answer = cited(transcript)
    stops = [each for each in transcript.stops if isinstance(each, SourceNumber)]
    assert stops == numbers(answer)
    answer.body.setFocus()
    qtbot.keyClick(answer.body, Qt.Key.Key_Tab)
    assert stops[0].hasFocus()
    qtbot.keyClick(stops[0], Qt.Key.Key_Tab)
    assert stops[1].hasFocus()
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space):
        with qtbot.waitSignal(transcript.intent) as emitted:
            qtbot.keyClick(stops[1], key)
        assert emitted.args[0].source.words == DOGS


def test_copies_searches_and_screen_readers_get_the_text_alone(transcript: Transcript) -> None:
    answer = cited(transcript)
    shown = "The ferry sails at 9. Dogs pay half. In fog it does not sail."
    assert answer.body.readable_text.startswith(shown)
    answer.body.select_all()
    answer.body.copy()
    assert shown in QGuiApplication.clipboard().text()
    answer.copy()
    assert QGuiApplication.clipboard().text() == ANSWER
    assert transcript.answer_text("t") == ANSWER
    assert answer.body.link_at(QPointF(numbers(answer)[0].geometry().center())) == ""
    answer.body.show_found((Match(0, 0, len(shown)),), None)


def test_a_stored_answer_has_them_as_well_and_loses_nothing(transcript: Transcript, qtbot: QtBot) -> None:
    live = [(n.text(), n.geometry()) for n in numbers(cited(transcript))]
    answer = Answer(tuple(tokens_of(ANSWER)), "finished", ended())
    transcript.show_turns([Turn("t", QUESTION, answer)])
    shown = transcript.answer("t")
    assert shown
    assert [(n.text(), n.geometry()) for n in numbers(shown)] == live
    transcript.show_turns([Turn("t", QUESTION, replace(answer, finished=finished()))])
    plain = transcript.answer("t")
    assert plain
    assert not numbers(plain)
    assert plain.footer.sources.isHidden()


def test_zoom_and_a_new_width_move_them(transcript: Transcript) -> None:
    answer = cited(transcript)
    before = [each.geometry() for each in numbers(answer)]
    transcript.resize(420, 600)
    assert [each.text() for each in numbers(answer)] == ["1", "2", "3", "2", "3"]
    after = [each.geometry() for each in numbers(answer)]
    assert after != before
    for each in after:
        assert answer.body.rect().adjusted(0, 0, 4, 4).contains(each)


def test_the_reader_keeps_the_line_that_is_at_the_top(transcript: Transcript) -> None:
    """Numbers make some of the lines above wrap; the sentence that is being read stays where it is."""
    transcript.add_user("t0", QUESTION)
    answer = stream(
        transcript, "\n\n".join("The ferry " + "i " * n + "end." for n in range(20, 160)), size=999
    )
    bar = transcript.verticalScrollBar()
    bar.setValue(9 * bar.maximum() // 10)
    assert not transcript.is_following
    body = answer.body

    def top_line() -> tuple[str, int]:
        y = body.mapFrom(transcript.viewport(), QPoint(0, 0)).y()
        place = body.place_at(QPointF(8, y), between=True)
        assert place
        return f"{place.piece}/{place.char // 30}", round(body.top_of(place) - y)

    before, height = top_line(), body.height()
    source = body.table.text
    ends = [at + 4 for at in range(len(source)) if source.startswith("end.", at)]
    transcript.finish_answer("t", ended(()))
    assert (top_line(), body.height()) == (before, height)
    transcript.cite_answer("t", ended(tuple(Citation(end, 0, 0, len(NINE)) for end in ends)))
    assert len(numbers(answer)) == len(ends) == 140
    assert body.height() > height
    assert top_line() == before


def test_sources_are_numbered_in_the_order_of_the_text() -> None:
    documents = {0: ("ferry.md", FERRY_RULES)}
    at = FERRY_RULES.index(DOGS)
    passages = [
        Passage(0, 9, True, 1.0, 0, at, at + 9),
        Passage(9, 20, True, 0.9, 0, at + 30, len(FERRY_RULES)),
    ]
    answer = f"{FOG} {DOGS} {FOG} Nothing else is said here."
    first = FERRY_RULES.index(FOG)
    given = (
        Citation(len(FOG), 0, first, first + len(FOG)),
        Citation(len(FOG) + 15, 0, at, at + len(DOGS)),
        Citation(2 * len(FOG) + 17, 0, first, first + len(FOG)),
        Citation(9, 5, 0, 9),  # of a document that is gone
        Citation(9, 0, 0, 999),
    )
    found = sources_of(passages, answer, documents, None, given)
    assert [each.words for each in found] == [FOG, DOGS, "Nothing else is said here."]
    assert [each.ends for each in found] == [(23, 63), (38,), ()]


def test_a_citation_of_what_is_not_shown_has_no_number() -> None:
    text = AnswerText()
    text.append(tokens_of("Yes.\n\n```\ncode.\n```\n\n| a |\n|---|\n| b. |\n"))
    text.finish()
    source = text.table.text
    ends = [source.index(words) + len(words) for words in ("Yes.", "code.", "b.")]
    assert text.cite([(end, "1") for end in ends]) == [0]
    assert text.cite([(end, "1") for end in ends]) == []
    assert text.cite([]) == [0]
