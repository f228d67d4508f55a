"""bench retrieval: the questions fit their documents, and recall is of what a scorer would keep."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from core.bench import retrieval
from core.bench.retrieval import (
    BenchDocument,
    Found,
    Language,
    QuestionKind,
    documents,
    nll,
    prompt_for,
    questions,
    write_report,
)
from core.bench.retrieval import read as read_into
from core.cli import main
from core.encoder import encoder
from core.engine.engine import Engine
from core.events import Attachment, Message
from core.kv.cached_sequence import CachedSequence
from core.settings import Settings, assign_all
from core.system.paths import cache_dir

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
    fields = {name: getattr(document, name) for name in BenchDocument.__struct_fields__}
    assert BenchDocument(**{**fields, **change}).text() is None


def bench(model: Path, out: Path, *options: str, name: str = "retrieval") -> list[dict[str, Any]]:
    command = ["bench", "retrieval", "--model", str(model), "--out", str(out), "--quiet", *options]
    assert main(command) == 0
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()[1:]]


@pytest.mark.sweep
def test_results_and_report_and_resuming(
    toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--documents", ",".join(CHOSEN), "--scorers", "random", "--keep", "5,50")
    results = bench(toy_folder, tmp_path, *options)
    of_chosen = [question for question in questions() if question.document in CHOSEN]
    assert len(results) == len(of_chosen)
    assert {len(found["recall"]) for found in results} <= {0, 2}
    report = capsys.readouterr().out
    assert report.index("## Held-out documents") < report.index("## Documents for tuning")
    assert "Left out" not in report
    for kind in {question.kind for question in of_chosen} - {"beginning", "end"}:
        assert f"| question: {kind} |" in report
    assert "| language: en |" in report
    before = (tmp_path / "retrieval.jsonl").read_bytes()
    bench(toy_folder, tmp_path, *options)
    assert (tmp_path / "retrieval.jsonl").read_bytes() == before


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> tuple[BenchDocument, str]:
    """The beginning of a document, which is then the bench's only one, with its text."""
    full = next(document for document in documents() if document.name == "tide-mill")
    text = (full.text() or "")[:2200]
    document = replace(full, end=full.start + len(text), sha256=hashlib.sha256(text.encode()).hexdigest())
    asked = [one for one in questions() if one.document == full.name and one.gold[-1][1] < len(text)]
    assert sum(one.answer is not None for one in asked) > 2
    monkeypatch.setattr(retrieval, "documents", lambda: [document])
    monkeypatch.setattr(retrieval, "questions", lambda: asked)
    return document, text


def test_all_scorers_of_a_question_share_its_prompt(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = []

    def counted(*arguments: Any) -> Any:
        rendered.append(arguments)
        return render(*arguments)

    render = retrieval._rendered
    monkeypatch.setattr(retrieval, "_rendered", counted)
    bench(
        toy_folder, tmp_path, "--documents", "shuchuan", "--scorers", "random,head-and-tail", "--keep", "20"
    )
    assert len(rendered) == sum(question.document == "shuchuan" for question in questions())


def test_vectors_of_a_document_are_computed_once_and_not_put_into_the_apps_cache(
    toy_folder: Path, short: tuple[BenchDocument, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def counted() -> encoder.Encoder:
        opened.append(open_encoder())
        return opened[-1]

    open_encoder = encoder.open_encoder
    before = set((cache_dir() / "vectors").glob("*"))
    monkeypatch.setattr(encoder, "open_encoder", counted)
    results = bench(toy_folder, tmp_path, "--scorers", "fusion")
    assert len(results) == len(retrieval.questions()) > 1
    assert len(opened) == 1
    assert len(list((tmp_path / "vectors").iterdir())) == 1
    assert set((cache_dir() / "vectors").glob("*")) == before


def test_settings_are_the_measurements_own(toy_folder: Path, tmp_path: Path) -> None:
    options = ("--documents", "shuchuan", "--scorers", "lexical")
    results = bench(toy_folder, tmp_path / "fixed", *options, "--set", "prefill.passages=fixed")
    assert "prefill.passages=fixed" in (tmp_path / "fixed" / "retrieval.md").read_text()
    others = bench(toy_folder, tmp_path / "sentences", *options)
    assert [found["recall"] for found in results] != [found["recall"] for found in others]
    refused = ["--out", str(tmp_path / "fixed"), "--quiet", *options]
    assert main(["bench", "retrieval", "--model", str(toy_folder), *refused]) == 1


@pytest.mark.parametrize("setting", ["prefill.keep_pct=5", "sampling.seed=1", "prefill.scorer"])
def test_other_settings_are_refused(setting: str, tmp_path: Path) -> None:
    assert main(["bench", "retrieval", "--out", str(tmp_path), "--set", setting]) == 2


def _found(scorer: str, number: int, recall: float, kind: str = "verbatim", without: str = "") -> Found:
    return Found("letter", number, scorer, kind, "prose", "fr", True, 900, 0.1, (recall,), without)


def test_the_report_names_kinds_that_are_worse_than_words() -> None:
    found = [_found("lexical", 0, 0.9), _found("other", 0, 0.89)]
    found += [_found("lexical", 1, 0.9, "code"), _found("other", 1, 0.8, "code", "no encoder")]
    report = "\n".join(write_report(found, (20.0,), ["another"], []))
    assert "Left out, because their packages hold other texts: another." in report
    assert "- other, question: code, 20%: 0.80 instead of 0.90" in report
    assert "other, question: verbatim, 20%" not in report
    assert "- lexical" not in report
    assert "- other, 1 questions: no encoder" in report


@pytest.mark.sweep
def test_right_answers_after_sparse_and_complete_reading(
    toy_folder: Path, toy_engine: Engine, short: tuple[BenchDocument, str], tmp_path: Path
) -> None:
    document, text = short
    options = ("--scorers", "random", "--keep", "40", "--answers", "2")
    answers = bench(toy_folder, tmp_path, *options, name="answers")
    assert len(answers) == 2
    for answered in answers:
        assert [way["name"] for way in answered["ways"]] == ["no document", "40%", "everything"]
        read = [way["tokens"] for way in answered["ways"]]
        assert read == sorted(set(read))
    # The second question continues what the first one read of the document: as if it were read from nothing.
    second = retrieval.questions()[answers[1]["number"]]
    loaded = toy_engine.loaded
    message = Message("user", second.question, (Attachment(document.name, text),))
    prompt = prompt_for(loaded, (message,))
    off = assign_all(Settings(), [("prefill.mode", "off")]).prefill
    sequence = CachedSequence(loaded.new_cache)
    read_into(loaded, sequence, prompt, off)
    answer = loaded.tokenizer.encode(second.answer or "", add_special_tokens=False)
    likelihood = -nll(loaded, sequence, prompt.ids[-1], answer)
    assert answers[1]["ways"][-1]["log_likelihood"] == pytest.approx(likelihood, abs=1e-4)
    report = (tmp_path / "answers.md").read_text()
    assert "## Documents for tuning: 2 questions" in report
    before = (tmp_path / "answers.jsonl").read_bytes()
    bench(toy_folder, tmp_path, *options)
    assert (tmp_path / "answers.jsonl").read_bytes() == before


@pytest.mark.sweep
def test_words_find_more_than_chance(toy_folder: Path, tmp_path: Path) -> None:
    """Of two documents; the whole is the bench's own business."""
    options = ("--documents", ",".join(CHOSEN), "--scorers", "random,lexical", "--keep", "10,20")
    shares: dict[str, float] = {"random": 0.0, "lexical": 0.0}
    for found in bench(toy_folder, tmp_path, *options):
        assert found["recall"] == sorted(found["recall"])
        shares[found["scorer"]] += sum(found["recall"][1:])
    assert shares["lexical"] > 2 * shares["random"]
