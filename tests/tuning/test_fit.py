"""The fit: features are what the evidence really weighs, and known weights are found again."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from core.drafting.calibration import WEIGHTS, Calibration, Weights
from core.drafting.evidence import Evidence
from tests.tuning.__main__ import main
from tests.tuning.fit import DRAFTED, _leaves, collect, log_loss, newton
from tests.tuning.gram_count import GramCounter, Pruning
from tests.tuning.streams import Stream, write_streams


def streams() -> list[Stream]:
    rng = random.Random(4)
    made = []
    for _ in range(10):
        phrase = [rng.randrange(50) for _ in range(6)]
        text = [*phrase, *(rng.randrange(50) for _ in range(10)), *phrase, rng.randrange(50), *phrase]
        tops = [[token, (token + 1) % 50, (token + 2) % 50] for token in text[12:]]
        made.append(Stream(text[:12], text[12:], "made", tops))
    return made


def test_features_times_weights_are_the_log_odds() -> None:
    stream = streams()[0]
    guesses = collect([stream])
    weights = np.array([float(str(leaf)) for leaf in _leaves(WEIGHTS)])
    evidence = Evidence(1000, Calibration(WEIGHTS))
    evidence.read(stream.prompt)
    expected: list[float] = []
    for place, token in enumerate(stream.out):
        expected += evidence.log_odds_of_guesses(evidence.position())[0].values()
        evidence.observe(token, ())
        evidence.observe_ranking([stream.tops[place]])
    assert guesses.features @ weights == pytest.approx(expected)
    assert guesses.came.sum() > 10


def test_newton_finds_the_weights_that_made_the_data() -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack([np.ones(20000), rng.normal(size=(20000, 2)), np.zeros(20000)])
    true = np.array([-0.5, 1.5, -1.0, 0.0])
    came = (rng.random(20000) < 1 / (1 + np.exp(-features @ true))).astype(np.float64)
    found = newton(features, came)
    assert found == pytest.approx(true, abs=0.08)
    assert log_loss(features @ found, came) <= log_loss(features @ true, came)


def test_the_command_writes_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "streams.jsonl.gz"
    write_streams(path, streams())
    assert main(["fit", "--streams", str(path), "--out", str(tmp_path / "out")]) == 0
    fitted = json.loads((tmp_path / "out" / "weights.json").read_text())
    assert set(fitted["weights"]) == set(Weights.__struct_fields__)
    assert 0 < fitted["loss"] < 0.7
    assert json.loads(capsys.readouterr().out) == fitted


def test_guesses_behind_a_draft_are_those_of_assumed_places() -> None:
    stream = streams()[0]
    weights = np.array([float(str(leaf)) for leaf in _leaves(WEIGHTS)])
    guesses = collect([stream], None, weights)
    evidence = Evidence(1000, Calibration(WEIGHTS))
    evidence.read(stream.prompt)
    expected: list[float] = []
    for place, token in enumerate(stream.out):
        position = evidence.position()
        for ahead in range(place, min(place + 4, len(stream.out) - 1)):
            odds = evidence.log_odds_of_guesses(position)[0].get(stream.out[ahead], -9.0)
            if 1 / (1 + math.exp(-odds)) < DRAFTED:
                break
            position = evidence.after(position, stream.out[ahead])
            expected += evidence.log_odds_of_guesses(position)[0].values()
        evidence.observe(token, ())
        evidence.observe_ranking([stream.tops[place]])
    assert len(expected) > 5
    # The length's weight grows with the guesses that are assumed; that part is no feature of its own.
    assert len(guesses.features) == len(expected)
    assert set(guesses.features[:, Weights.__struct_fields__.index("reached")]) == {1.0}


def test_a_weight_on_top_of_known_log_odds() -> None:
    rng = np.random.default_rng(2)
    known = rng.normal(size=20000)
    came = (rng.random(20000) < 1 / (1 + np.exp(-known - 0.7))).astype(np.float64)
    assert newton(np.ones((20000, 1)), came, known) == pytest.approx([0.7], abs=0.06)


def test_features_stay_features_where_the_learned_table_is_wrong() -> None:
    counter = GramCounter(4)
    counter.add([], [900, 901, 902] * 20)
    guesses = collect(streams(), counter.table(Pruning(least_share=0.0, discount=0.0)))
    assert guesses.features.dtype == np.float64
    assert len(guesses.features) == len(guesses.came) > 100
