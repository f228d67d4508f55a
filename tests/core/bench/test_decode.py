"""The decode bench measures what it says, writes both files, and fails when outputs differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.bench import decode
from core.bench.cases import read_prompts
from core.bench.runs import BenchRun, converse, joined
from core.cli import main
from core.decoding import loop
from core.drafting.draft import Draft
from core.engine.engine import Engine
from core.errors import RequestError
from core.settings import Settings, assign


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    lines = [
        {"class": "list", "prompt": "one two one two one two"},
        {"class": "tale", "prompt": "once upon a time"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture(autouse=True)
def few_draft_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure draft times with a short history and few steps."""
    monkeypatch.setattr(decode, "HISTORY_TOKENS", 1_000)
    monkeypatch.setattr(decode, "_STEPS", 50)


def bench(toy_folder: Path, prompts: Path, out: Path, *, max_tokens: int = 24) -> int:
    return main(
        [
            *("bench", "decode", "--model", str(toy_folder), "--prompts", str(prompts), "--out", str(out)),
            *(
                "--pairs",
                "2",
                "--k",
                "2,5",
                "--n-min",
                "2",
                "--max-tokens",
                str(max_tokens),
                "--max-prompt-tokens",
                "20",
            ),
        ]
    )


def test_results_and_report(
    toy_folder: Path, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(toy_folder, prompts, tmp_path / "out") == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert len(results["cells"]) == 2 * 3
    for cell in results["cells"]:
        assert cell["equal"]
        assert len(cell["pairs"]) == 2
        assert cell["tokens"] == 24
        assert cell["prompt_tokens"] <= 20
        assert cell["ratio_median"] > 0
        assert cell["ttft_s_median"] > 0
    assert results["environment"]["mlx"]
    report = (tmp_path / "out" / "report.md").read_text()
    assert report == capsys.readouterr().out.rstrip("\n") + "\n"
    assert report.count("| equal |") == 6
    assert "ngram-simple k=5 n_min=2" in report


def test_a_difference_is_reported_and_fails(
    toy_folder: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = loop.walk

    def gullible(draft: Draft, choices: list[int], *rest: object) -> object:
        """Accepts every draft."""
        return honest(draft, [*draft.tokens, choices[-1]])

    monkeypatch.setattr(loop, "walk", gullible)
    assert bench(toy_folder, prompts, tmp_path / "out") == 1
    assert "**different**" in (tmp_path / "out" / "report.md").read_text()


def test_an_answer_of_one_token_has_nothing_to_compare(
    toy_folder: Path, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(toy_folder, prompts, tmp_path / "out", max_tokens=1) == 0
    cells = json.loads((tmp_path / "out" / "results.json").read_text())["cells"]
    assert [cell["ratio_median"] for cell in cells] == [0.0] * 6
    report, said = capsys.readouterr()
    rows = [line for line in report.splitlines() if line.startswith("| list | ")]
    assert [row.split(" | ")[2:5] for row in rows] == [["nothing to compare", "–", "–"]] * 3
    assert "- list, off: 2 of 2 pairs, 1 token" in report
    assert said.count("nothing to compare") == 6
    assert "0.00" not in said.replace("mean 0.00", "")


def test_a_pair_with_nothing_to_compare_is_in_no_median(
    toy_folder: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, asked = decode.mlx_lm, []

    def once_without_time(*arguments: Any, **options: Any) -> BenchRun:
        asked.append(1)
        run = honest(*arguments, **options)
        # Every third answer: of each cell's warm-up and two pairs, the last.
        return replace(run, tokens_per_s=0.0 if len(asked) % 3 == 0 else 2.0)

    monkeypatch.setattr(decode, "mlx_lm", once_without_time)
    assert bench(toy_folder, prompts, tmp_path / "out") == 0
    for cell in json.loads((tmp_path / "out" / "results.json").read_text())["cells"]:
        first, last = cell["pairs"]
        assert last["ratio"] == 0.0
        assert cell["ratio_median"] == first["ratio"] > 0
        assert cell["baseline_tokens_per_s_median"] == 2.0
    assert "- list, off: 1 of 2 pairs, 24 tokens" in (tmp_path / "out" / "report.md").read_text()


def test_answers_without_decode_time_are_not_in_the_speed_of_all() -> None:
    timed, at_once = BenchRun([1, 2, 3], 0.1, 10.0), BenchRun([1, 2, 3, 4], 0.1, 0.0)
    assert joined([timed, at_once]).tokens_per_s == pytest.approx(10.0)
    assert joined([at_once]).tokens_per_s == 0.0


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "no prompts"), ('{"class": "a"}', "line 1"), ('{"prompt": "a"}\nnot json', "line 2")],
)
def test_bad_prompt_files(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(content)
    with pytest.raises(RequestError, match=words):
        read_prompts(path)


def test_a_missing_prompt_file(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read"):
        read_prompts(tmp_path / "none.jsonl")


@pytest.mark.sweep
def test_a_conversation_is_measured_turn_by_turn(toy_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps({"class": "talk", "turns": ["one two one two", "one two again", "and again"]}))
    assert bench(toy_folder, path, tmp_path / "out") == 0
    cells = json.loads((tmp_path / "out" / "results.json").read_text())["cells"]
    mine = [cell for cell in cells if cell["configuration"] == "ngram-simple k=5 n_min=2"]
    assert [cell["kind"] for cell in mine] == [
        *("talk, turn 1", "talk, turn 2", "talk, turn 3", "talk, all turns")
    ]
    assert all(cell["equal"] and len(cell["pairs"]) == 2 for cell in mine)
    tokens = [cell["tokens"] for cell in mine]
    assert tokens[3] == sum(tokens[:3])
    prompts = [cell["prompt_tokens"] for cell in mine]
    assert prompts[0] < prompts[1] < prompts[2]


@pytest.mark.parametrize("line", [{}, {"prompt": "a", "turns": ["b"]}, {"turns": [1]}])
def test_a_line_is_a_prompt_or_a_conversation(line: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(json.dumps(line))
    with pytest.raises(RequestError, match="line 1"):
        read_prompts(path)


def test_a_conversation_goes_on_with_what_it_kept(toy_engine: Engine) -> None:
    settings = assign(Settings(), "sampling.max_tokens", 8)
    first, second = converse(toy_engine, ["one two one two", "one two again"], settings)
    assert first.candidate.stats
    assert second.candidate.stats
    assert first.candidate.stats.reused_tokens == 0
    assert second.candidate.stats.reused_tokens >= first.prompt_tokens - 1
