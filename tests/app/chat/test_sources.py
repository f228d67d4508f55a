"""From the worker's passages to the sentences that a reader is led to."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.sources import sources_of
from app.chat.transcript import Transcript
from app.session.chats.conversation import Answer, Turn
from core.events import Attachment, Message, Passage, ReadingMap
from tests.app.chat.watching import stream
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
ANSWER = "The ferry sails at nine. Dogs pay half."
QUESTION = Message("user", "When?", (Attachment("ferry.md", FERRY_RULES),))
NINE, DOGS = "The ferry sails at nine.", "Dogs pay half."


def support(words: str) -> Passage:
    first = FERRY_RULES.index(words)
    return Passage(0, 9, True, 1.0, 0, first, first + len(words))


def test_the_row_has_a_button_for_each_source(transcript: Transcript, qtbot: QtBot) -> None:
    transcript.add_user("t0", QUESTION)
    answer = stream(transcript, ANSWER)
    transcript.finish_answer("t", replace(finished(), sources=(support(DOGS), support(NINE))))
    row = answer.footer.sources
    assert [button.text() for button in row.buttons] == ["1", "2"]
    for number, (button, words) in enumerate(zip(row.buttons, (DOGS, NINE), strict=True), 1):
        assert words in button.toolTip()
        assert words in button.accessibleDescription()
        assert "ferry.md" in button.toolTip()
        assert button.accessibleName() == f"Show passage {number} in the document"
        button.setFocus()
        with qtbot.waitSignal(transcript.intent) as emitted:
            qtbot.keyClick(button, Qt.Key.Key_Space)
        (intent,) = emitted.args
        assert (intent.turn_id, FERRY_RULES[intent.source.first : intent.source.last]) == ("t", words)


def test_a_stored_answer_has_the_row_as_well(transcript: Transcript) -> None:
    end = replace(finished(), sources=(support(DOGS),))
    answer = Answer(tuple(tokens_of(ANSWER)), "finished", end)
    transcript.show_turns([Turn("t", QUESTION, answer)])
    shown = transcript.answer("t")
    assert len(shown.footer.sources.buttons) == 1
    transcript.show_turns([Turn("t", QUESTION, replace(answer, finished=finished()))])
    plain = transcript.answer("t")
    assert plain.footer.sources.isHidden()
