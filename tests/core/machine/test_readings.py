"""The trial of readings: its likelihoods are those of plain forward passes, and it decides what is read."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_tokenizer

from core.events import Attachment, Message, ModelInfo
from core.machine import readings
from core.machine.exactness import machine_key
from core.machine.profile import MachineProfile
from core.machine.readings import TRIALS, ReadingTrial
from core.models.loader import LoadedModel
from core.prompt import render
from core.system.paths import resources_dir
from tests.core.engine.test_saved_chats import long_model
from tests.core.toy import write_toy_model

LONG = "first-page/heat-pump.md"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "_CHARACTERS", 1100)
    monkeypatch.setattr(readings, "_QUESTIONS", (("What is propane?", "A gas"), ("What hangs?", "An unit")))


def loaded_of(architecture: str, folder: Path) -> LoadedModel:
    write_toy_model(folder)
    return long_model(architecture, load_tokenizer(folder), folder)


@pytest.mark.sweep
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "qwen3_5"])
def test_likelihoods_are_those_of_plain_forward_passes(architecture: str, tmp_path: Path) -> None:
    loaded = loaded_of(architecture, tmp_path)
    tokenizer = loaded.tokenizer
    profile = MachineProfile(loaded)
    pieces = 0
    while profile.some_readings():
        pieces += 1
    trial = TRIALS.load(machine_key(loaded.info))
    assert trial is not None
    assert pieces > 12, "a request waits for one chunk"
    assert len(trial.whole) == len(trial.passages) == 2
    assert len(trial.columns) == (2 if architecture == "llama" else 0)
    assert len({*trial.whole, *trial.passages, *trial.columns}) == 4 + len(trial.columns)
    text = (resources_dir() / LONG).read_text("utf-8")[:1100]
    for (question, right), likelihood in zip(readings._QUESTIONS, trial.whole, strict=True):
        message = Message("user", question, (Attachment("manual", text),))
        ids = render(tokenizer, [message], thinking="off").ids
        gold = tokenizer.encode(right, add_special_tokens=False)
        logits = loaded.model(mx.array([*ids, *gold])[None], cache=make_prompt_cache(loaded.model))[0]
        rows = logits[len(ids) - 1 : -1].astype(mx.float32)
        wanted = [float(row[token] - mx.logsumexp(row)) for row, token in zip(rows, gold, strict=True)]
        assert likelihood == pytest.approx(sum(wanted) / len(wanted), abs=1e-3)
    assert not profile.some_readings()
    again = MachineProfile(loaded)
    assert not again.some_readings(), "it is kept"
    assert again.preference == profile.preference
    assert readings.summaries()[str(tmp_path)] == trial.summary
    assert trial.summary.count("−") == (3 if architecture == "llama" else 2)


def test_a_text_that_does_not_fit_is_not_read(tmp_path: Path) -> None:
    loaded = loaded_of("llama", tmp_path)
    profile = MachineProfile(loaded)
    assert profile.readings_anew().whole == ()
    assert readings.summaries()[str(tmp_path)] == ""
    assert profile.preference.reason == "by its size"


@pytest.mark.parametrize("parameters", [10**8, 10**10])
@pytest.mark.parametrize(
    ("whole", "columns", "passages", "prefers"),
    [
        ((-4.0, -4.2, -4.1), (-3.0, -3.3, -3.1), (-2.0, -2.2, -2.1), (True, True)),
        ((-2.0, -2.2, -2.1), (-3.0, -3.3, -3.1), (-4.0, -4.2, -4.1), (False, False)),
        ((-4.0, -4.2, -4.1), (-2.0, -2.3, -2.1), (-3.0, -3.2, -3.1), (False, True)),
        ((-4.0, -4.2, -4.1), (), (-2.0, -2.2, -2.1), (True, None)),
        ((-4.0, -4.2, -4.1), (-4.0, -4.2, -4.1), (-2.0, -2.2, -2.1), (True, None)),
        ((-4.0, -1.0, -9.1), (-2.0, -2.3, -8.1), (-3.0, -3.2, -3.1), (None, None)),
        ((), (), (), (None, None)),
    ],
)
def test_a_certain_difference_decides_and_else_the_size(
    whole: tuple[float, ...],
    columns: tuple[float, ...],
    passages: tuple[float, ...],
    prefers: tuple[bool | None, bool | None],
    parameters: int,
) -> None:
    info = ModelInfo("", "", "", "", "", "", "", parameters, 0, 0, 0, 0, True)
    found = ReadingTrial("", "", whole, columns, passages).preference(info)
    is_small = parameters < 10**9
    assert (found.passages, found.columns) == tuple(is_small if each is None else each for each in prefers)
    assert (found.reason == "by its size") == (prefers == (None, None))
