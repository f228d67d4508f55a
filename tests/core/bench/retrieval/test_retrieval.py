"""bench retrieval: the questions fit their documents, and recall is of what a scorer would keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.bench.retrieval.questions import Document, documents, questions
from core.bench.retrieval.retrieval import _recall
from core.cli import main
from core.engine.engine import Engine

CHOSEN = ("click-termui", "fsspec-caching")


def test_every_document_is_here_and_every_gold_place_in_it() -> None:
    """Numpy's licence names what its wheel has inside, which is another with another Python."""
    texts = {document.name: document.text() for document in documents()}
    assert {name for name, text in texts.items() if text is None} <= {"numpy-licence"}
    assert len(texts) > 20
    asked = [question for question in questions() if texts[question.document] is not None]
    assert len(asked) >= 150
    for question in asked:
        text = texts[question.document] or ""
        assert all(0 <= first < last <= len(text) for first, last in question.gold)


def test_about_half_is_held_out() -> None:
    held = {document.name: document.held_out for document in documents()}
    share = sum(held[question.document] for question in questions()) / len(questions())
    assert 0.4 < share < 0.6


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
