"""Every task: the same for a seed, its answer in the document and not in the question, length as asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random

import pytest

from core.bench.quality_tasks import OTHER_WORDS, TASKS, Case, fill, scatter, task
from core.errors import RequestError

ROOM = 2600


def count(text: str) -> int:
    """Words, single digits and signs: about what a tokenizer makes of these texts."""
    return len(re.findall(r"[a-zA-Z]+|\S", text))


def build(name: str, seed: int = 1, room: int = ROOM) -> Case:
    return task(name).build(Random(f"{name} {seed}"), room, count)


@pytest.mark.parametrize("name", TASKS)
def test_a_right_answer_passes_and_an_empty_one_fails(name: str) -> None:
    case = build(name)
    assert case.passes(case.lead + case.gold)
    assert case.found(case.gold + case.lead) == len(case.answers)
    assert not case.passes("")
    assert not case.passes(case.question + case.lead)


@pytest.mark.parametrize("name", TASKS)
def test_the_answer_is_in_the_document(name: str) -> None:
    case = build(name)
    assert case.found(case.document) == len(case.answers)


@pytest.mark.parametrize("name", TASKS)
def test_seeds_decide_everything(name: str) -> None:
    assert build(name) == build(name)
    assert build(name).gold != build(name, seed=2).gold or build(name).document != build(name, 2).document


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("room", [900, 2600])
def test_the_document_has_about_the_room(name: str, room: int) -> None:
    used = count(build(name, room=room).document)
    assert 0.65 * room < used <= 1.05 * room


@pytest.mark.parametrize("name", ["needle-10", "needle-50", "needle-90"])
def test_a_needle_is_at_its_depth(name: str) -> None:
    case = build(name)
    depth = case.document.index(case.answers[0]) / len(case.document)
    assert abs(depth - int(name[-2:]) / 100) < 0.06


def test_three_values_of_eighty_records() -> None:
    case = build("json-three", room=4000)
    records = json.loads(case.document[case.document.index("[") :])
    assert len(records) == 80
    asked = re.findall(r"P\d+", case.question)
    held = {record["id"]: str(record["litres"]) for record in records}
    assert tuple(held[name] for name in asked) == case.answers


def test_one_function_has_the_bug() -> None:
    case = build("planted-bug")
    wrong = re.findall(r"def (\w+)\([^@]*?range\((.*?)\):", case.document)
    assert [name for name, span in wrong if span == "1, len(values)"] == list(case.answers)
    assert len(wrong) > 10


def test_common_words_are_the_most_common() -> None:
    case = build("common-words", room=4000)
    times = Counter(re.findall(r"\d+\. (\w+)", case.document))
    assert {word for word, _ in times.most_common(10)} == set(case.answers)
    assert times.most_common(11)[9][1] > 3 * times.most_common(11)[10][1]


def test_frequent_words_are_the_most_frequent() -> None:
    case = build("frequent-words")
    times = Counter(word for word in case.document.split() if word != "...")
    assert [word for word, _ in times.most_common(3)] == list(case.answers)


@pytest.mark.parametrize("seed", range(1, 30))
def test_variables_are_assigned_before_they_are_used(seed: int) -> None:
    case = build("variable-tracking", seed, room=900)
    value = re.search(r"value (\d+)", case.question)
    assert value
    held: dict[str, str] = {}
    for name, what in re.findall(r"VAR (\w+) = (?:VAR )?(\w+)", case.document):
        held[name] = held.get(what, what)
    assert [name for name, number in held.items() if number == value[1]] == list(case.answers)


@pytest.mark.parametrize(("told", "question", "lead"), OTHER_WORDS)
def test_a_fact_is_asked_for_in_other_words(told: str, question: str, lead: str) -> None:
    def stems(text: str) -> set[str]:
        return {word[:4] for word in re.findall(r"[a-z]{3,}", text.lower())} - {"the", "for", "who", "was"}

    assert not stems(told.format(number=0)) & stems(f"{question} {lead}")


def test_words_are_found_whole() -> None:
    case = Case("", "", "", ("382", "teal"), "")
    assert case.found("It is 382, and Teal.") == 2
    assert case.found("It is 13825, a steal.") == 0
    assert not case.passes("382")
    assert Case("", "", "", ("a", "b", "c"), "", needed=2).passes("a c")


def test_parts_are_filled_and_scattered() -> None:
    assert fill(iter(["one two", "three", "four five"]), 8, count) == ["one two", "three"]
    assert fill(iter(["far too long for it"]), 1, count) == ["far too long for it"]
    parts = [str(i) for i in range(10)]
    planted = scatter(parts, ["a", "b", "c"], [0.0, 0.5, 0.5])
    assert planted == ["a", *parts[:5], "b", "c", *parts[5:]]


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(RequestError, match="needle-11") as raised:
        task("needle-11")
    assert "needle-10" in raised.value.hint
