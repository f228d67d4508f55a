"""Played answers: the text is the one that was given, on a model that would write another one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from core.cli.arguments import UsageError
from core.decoding import sampling
from core.drafting.auto import AutoDrafter
from tests.core.toy import write_toy_model
from tests.tuning.__main__ import parser
from tests.tuning.played import CONTESTANTS, Models, Played, Run, chosen, play, report
from tests.tuning.streams import Stream

# Ids of the toy's letters: what is written with tools switched on must be text.
PHRASE = [40, 51, 62, 73, 84, 95, 66, 77]
COPIED = Stream([9, *PHRASE * 4], PHRASE * 5, "copy")
NEW = Stream([9, 8, 7], [(5 + 37 * at) % 90 + 4 for at in range(40)], "new")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    folder = tmp_path_factory.mktemp("played")
    write_toy_model(folder / "base")
    made = Models(folder / "models", folder / "base")
    yield made
    made.close()


def test_all_contestants_play_the_text_and_drafts_are_accepted_by_it(models: Models) -> None:
    before = (sampling.RowHistory.inputs, sampling.Sampler.choose, AutoDrafter.observe_top)
    copied, new = (play(models, "2x96", number, text) for number, text in enumerate((COPIED, NEW)))
    for found, text in ((copied, COPIED), (new, NEW)):
        assert set(found.runs) == set(CONTESTANTS)
        assert all(run.tokens == len(text.out) and run.tokens_per_s > 0 for run in found.runs.values())
    assert copied.runs["off"].steps == len(COPIED.out)
    assert copied.runs["auto"].steps < len(COPIED.out) / 2
    assert copied.runs["ngram-simple"].steps < len(COPIED.out) / 2
    # Nothing in it repeats, and no contestant has learned it from the ones before.
    assert {run.steps for run in new.runs.values()} == {len(NEW.out)}
    assert before == (
        sampling.RowHistory.inputs,
        sampling.Sampler.choose,
        AutoDrafter.observe_top,
    )


def test_texts_are_drawn_by_class_cut_and_free_of_loops() -> None:
    texts = [
        Stream([1], [(start + 37 * at) % 251 for at in range(50)], cls)
        for cls in ("a", "b")
        for start in range(3)
    ]
    found = chosen([*texts, Stream([1], [5] * 50, "loop"), Stream([1], [1, 2], "short")], 2, 30)
    assert [text.cls for text in found] == ["a", "a", "b", "b"]
    assert {len(text.out) for text in found} == {30}
    assert found == chosen([*texts], 2, 30)


def test_the_report_compares_with_both_runs_of_off() -> None:
    speeds = {"mlx-lm": 200.0, "off": 100.0, "off again": 400.0, "ngram-simple": 100.0}
    runs = {name: Run(10, 10, speeds.get(name, 300.0), 2.0) for name in CONTESTANTS}
    row = Played("8x96", 0, "open", runs)
    assert row.ratio("auto") == pytest.approx(1.5)
    lines = report([row, Played("8x96", 1, "open", runs | {"auto": Run(10, 5, 30.0)})])
    assert "## 8x96: a plain step of mlx-lm takes 5.0 ms" in lines
    (cells,) = [line for line in lines if line.startswith("| open")]
    assert cells.endswith("| 2 | 4.00 (4.00 to 4.00) | 0.50 (0.50 to 0.50) | 0.50 (0.50 to 0.50)"
                          " | 1.50 (1.50 to 1.50) | 0.82 (0.15 to 1.50)"
                          " | 3.00 (3.00 to 3.00) | 5.50 (1.00 to 10.00) |")  # fmt: skip


@pytest.mark.parametrize("size", ["28", "0x96", "28x100", "28x301", "x96", "28x96x2"])
def test_a_size_that_no_model_has_is_refused(size: str) -> None:
    with pytest.raises(UsageError, match="layers x hidden size"):
        parser().parse_args(["played", "--out", "nowhere", "--sizes", size])


def test_the_defaults_are_sizes_that_models_have() -> None:
    options: argparse.Namespace = parser().parse_args(["played", "--out", "nowhere"])
    given = ",".join(options.sizes)
    assert parser().parse_args(["played", "--out", "nowhere", "--sizes", given]).sizes == options.sizes
