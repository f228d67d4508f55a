"""Tests of the grading rule and of the test set."""

from __future__ import annotations

import pytest

from tests.tuning.answers import GRADED_WORDS, documents, is_right, loops


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("A full plot costs £74 a year.", True),
        ("It is 1,274 pounds.", False),
        ("The cost is not £74.", False),
        ("It isn’t clear whether it is £74.", False),
        ("There is no reduction. It costs £74.", True),
        ("Not £60 but £74.", True),
        ("It costs £740.", False),
        ("word " * GRADED_WORDS + "£74", False),
    ],
)
def test_an_answer_is_right_if_it_states_the_fact_early_and_does_not_negate_it(
    answer: str, right: bool
) -> None:
    assert is_right(answer, ("74",)) == right


@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        ("Il vaut soixante-quinze euros.", "soixante-quinze"),
        ("Die FÄHRE hat Vorfahrt.", "Fähre"),
        ("L'affaire de l’hôtel est close.", "hotel"),
        ("3128 orders", "3,128"),
        ("Mrs Pruett's record", "Pruett"),
        ("a rate of 14.20.", "£14.20"),
    ],
)
def test_facts_are_compared_without_case_accents_and_separators(answer: str, fact: str) -> None:
    assert is_right(answer, (fact,))


def test_a_cycle_of_up_to_four_sentences_is_a_loop_and_a_list_is_not() -> None:
    sentences = ["The rent is due on the first. ", "It is paid by transfer. ", "So it is. ", "Ask us. "]
    for count in range(1, 5):
        assert loops("Well. " + "".join(sentences[:count]) * 3)
        assert not loops("".join(sentences[:count]) * 2 + "The rent has been paid already by someone else.")
    assert not loops("\n".join(f"{number}. The member pays {number} pounds a year" for number in range(20)))
    assert loops("the same five words here " * 12)


def test_every_fact_is_in_its_document() -> None:
    for document in documents():
        text = document.attachment().text
        for question in document.questions:
            assert any(is_right(part, question.answers) for part in _windows(text)), question


def _windows(text: str) -> list[str]:
    """Lines, cut into parts that are short enough to be graded."""
    words = [word for line in text.splitlines() for word in [*line.split(), "\n"]]
    return [" ".join(words[at : at + 40]) for at in range(0, len(words), 20)]
