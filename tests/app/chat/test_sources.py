"""From the worker's passages to the sentence that a reader is led to."""

from __future__ import annotations

from app.chat.sources import sources_of
from core.events import Passage, ReadingMap

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
