"""bench retrieval: the questions fit their documents, and recall is of what a scorer would keep."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from core.bench.retrieval.questions import Document, Language, QuestionKind, documents, questions
from core.bench.retrieval.retrieval import _recall
from core.cli import main
from core.engine.engine import Engine

CHOSEN = ("click-termui", "fsspec-caching")


# Their text differs between builds of their package for other Python versions.
DIFFERS = {"numpy-licence", "numpy-newdocs"}


def test_every_gold_range_is_a_short_part_of_its_document() -> None:
    texts = {document.name: document.text() for document in documents()}
    assert {name for name, text in texts.items() if text is None} <= DIFFERS
    for question in questions():
        if (text := texts[question.document]) is not None:
            assert question.gold
            for first, last in question.gold:
                assert 0 <= first < last <= len(text)
                assert last - first <= 600
                assert text[first:last].strip()


def test_the_set_is_large_and_both_halves_hold_every_kind_and_language() -> None:
    by_name = {document.name: document for document in documents()}
    assert len(by_name) == len(documents()) >= 40
    assert len(questions()) >= 350
    assert len({(one.document, one.question) for one in questions()}) == len(questions())
    for held_out in (False, True):
        half = [one for one in questions() if by_name[one.document].held_out == held_out]
        assert 0.4 < len(half) / len(questions()) < 0.6
        kinds = Counter(one.kind for one in half)
        assert kinds["paraphrase"] >= 70
        assert set(kinds) == set(get_args(QuestionKind))
        assert min(kinds.values()) >= 7
        languages = Counter(by_name[one.document].language for one in half)
        assert set(languages) == set(get_args(Language))
        assert min(languages.values()) >= 8
        assert sum(one.answer is not None for one in half) >= 60


def _content_words(text: str) -> set[str]:
    """Beginnings of words of four letters or more, and pairs of Chinese characters."""
    words = {word[:5] for word in re.findall(r"[^\W\d_\u4e00-\u9fff]{4,}", text.lower())}
    chinese = "".join(re.findall(r"[\u4e00-\u9fff]+", text))
    return words | {first + second for first, second in pairwise(chinese)}


def test_paraphrases_share_few_words_with_what_answers_them() -> None:
    """Measured over 155 paraphrases: a mean share of 0.03, none in 118 of them, 0.25 at most."""
    texts = {document.name: document.text() for document in documents()}
    shares = []
    for one in questions():
        if one.kind == "paraphrase" and (text := texts[one.document]) is not None:
            gold = _content_words(" ".join(text[first:last] for first, last in one.gold))
            asked = _content_words(one.question)
            shares.append(len(asked & gold) / len(asked))
    assert max(shares) <= 0.3
    assert sum(shares) / len(shares) <= 0.05


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"file": "nowhere/*"}, {"start": 1}])
def test_another_text_is_left_out(change: dict[str, str | int]) -> None:
    document = documents()[0]
    fields = {name: getattr(document, name) for name in Document.__struct_fields__}
    assert Document(**{**fields, **change}).text() is None


def test_results_and_report_and_going_on(
    toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bench(scorers: str) -> dict[str, object]:
        command = ["bench", "retrieval", "--model", str(toy_folder), "--scorers", scorers]
        chosen = ["--documents", ",".join(CHOSEN)]
        assert main([*command, *chosen, "--out", str(tmp_path), "--quiet"]) == 0
        found: dict[str, object] = json.loads((tmp_path / "results.json").read_text())
        return found

    results = bench("random")
    found = results["found"]
    assert isinstance(found, list)
    assert len(found) == sum(question.document in CHOSEN for question in questions())
    assert results["missing"] == []
    report = capsys.readouterr().out
    for kind in ("verbatim", "paraphrase", "code", "two places", "aggregate"):
        assert f"| random | asked: {kind} |" in report
    before = (tmp_path / "found.jsonl").read_bytes()
    bench("random")
    assert (tmp_path / "found.jsonl").read_bytes() == before


@pytest.mark.sweep
def test_words_find_more_than_chance(toy_engine: Engine) -> None:
    """Of two documents; the whole is the bench's own business."""
    shares: dict[str, list[float]] = {"random": [], "lexical": []}
    for document in [document for document in documents() if document.name in CHOSEN]:
        text = document.text() or ""
        for question in [question for question in questions() if question.document == document.name]:
            for scorer, found in shares.items():
                _, _, recall = _recall(toy_engine.loaded, document, text, question, scorer)
                assert list(recall) == sorted(recall)
                found += recall[1:2]
    assert sum(shares["lexical"]) > 2 * sum(shares["random"])
