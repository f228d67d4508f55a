"""Training of a head: it learns, continues after a stop, and drafts without changing an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

from core.cli import main
from core.cli.models import _facts
from core.engine.engine import Engine
from core.models.catalogue import Catalogue
from core.models.config import Machine
from core.models.loader import LoadedModel, load
from core.models.mtp import MtpHead, load_head, save_head
from core.models.mtp_files import TrainedHead
from core.models.parts import SplitModel, split
from core.rehearsal.heads import HeadPlan, HeadTraining, record_states
from core.rehearsal.streams import Stream
from core.settings import Settings
from tests.core.engine.test_conformance import run, settings
from tests.core.toy import toy_model, write_toy_model

PROMPTS = [{"prompt": f"say {at}", "then": ["again"]} for at in range(12)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heads") / "toy"
    write_toy_model(path)
    return path


def parts_of(loaded: LoadedModel) -> SplitModel:
    found = split(loaded.model)
    assert isinstance(found, SplitModel)
    return found


def streams(loaded: LoadedModel) -> list[Stream]:
    """Greedy answers; each second one continues the one before it."""
    found: list[Stream] = []
    rng = np.random.default_rng(0)
    for at in range(24):
        prompt: list[int] = rng.integers(4, 260, 10).tolist()
        if at % 2:
            prompt = [*found[-1].prompt, *found[-1].out, *prompt]
        ids = list(prompt)
        cache = make_prompt_cache(loaded.model)
        block = ids
        for _ in range(12):
            logits: Any = loaded.model(mx.array([block]), cache=cache)
            block = [int(mx.argmax(logits[0, -1]).item())]
            ids += block
        found.append(Stream(prompt, ids[len(prompt) :]))
    return found


def test_states_are_those_of_the_model_after_any_stop(folder: Path, tmp_path: Path) -> None:
    loaded = load(str(folder))
    parts, answers = parts_of(loaded), streams(loaded)
    path = tmp_path / "states"
    recording = record_states(loaded, parts, answers, path)
    for _ in range(5):
        next(recording)
    recording.close()
    last = [*record_states(loaded, parts, answers, path)][-1]
    assert last.done == last.total
    expected = [
        np.array(parts.body(mx.array([[*each.prompt, *each.out][:-1]]), cache=None)[0]) for each in answers
    ]
    got = np.fromfile(path, np.float16, offset=32).reshape(-1, 32)
    np.testing.assert_allclose(got, np.concatenate(expected), atol=2e-2)
    assert not [*record_states(loaded, parts, answers, path)]
    # Other answers are recorded anew.
    assert [*record_states(loaded, parts, answers[1:], path)]


def test_training_lowers_the_loss_and_continues(folder: Path, tmp_path: Path) -> None:
    loaded = load(str(folder))
    parts, answers = parts_of(loaded), streams(loaded)
    plan = HeadPlan(tmp_path / "states", tmp_path / "checkpoint.safetensors", 100, 12, 5e-3)
    list(record_states(loaded, parts, answers, plan.states))
    training = HeadTraining(loaded, parts, answers, plan)
    assert len(training.head.vocabulary) <= 100
    losses = [at.loss for at in training.train()]
    assert losses[-1] < 0.9 * losses[0]
    # Stopped in the middle, it ends with the same weights.
    stopped = HeadTraining(loaded, parts, answers, plan)
    steps = stopped.train()
    for _ in range(stopped.steps // 2):
        next(steps)
    stopped.save_checkpoint()
    resumed = HeadTraining(loaded, parts, answers, plan)
    *_, last = resumed.train()
    assert last.done == training.steps
    difference = mx.abs(resumed.head.projection.weight - training.head.projection.weight)
    assert difference.max().item() < 1e-5


def test_chains_in_training_are_those_of_drafting(folder: Path, tmp_path: Path) -> None:
    """Each guess equals the head's, run as in `HeadProposer`: the text's rows, then its own."""
    loaded = load(str(folder))
    parts, answers = parts_of(loaded), streams(loaded)[:3]
    plan = HeadPlan(tmp_path / "states", tmp_path / "checkpoint")
    list(record_states(loaded, parts, answers, plan.states))
    training = HeadTraining(loaded, parts, answers, plan)
    (given,) = [*training._trained, *training._held_out][1:2]
    others = [each for each in (*training._trained, *training._held_out) if each is not given]
    batch = training._loaded_batch([*others, given])
    guesses = training._guesses(batch)
    states = parts.body(mx.array([given.ids]), cache=None)
    for row in (0, 5):
        last = given.prompt - 1 + row  # the position of the newest token
        cache = make_prompt_cache(loaded.model)[0]
        embedded = parts.embed(mx.array([given.ids]))
        state = training.head(embedded[:, 1 : last + 1], states[:, :last], cache)[:, -1:]
        for depth, guessed in enumerate(guesses):
            if depth:
                state = training.head(embedded[:, last + depth : last + depth + 1], state, cache)
            assert mx.abs(guessed[-1, row] - state[0, 0]).max().item() < 2e-2


def drafting(**values: object) -> Settings:
    values = {"sampling.max_tokens": 40, "mtp.stop_below": 0.0, **values}
    return settings(("mtp", "fast"), Path(), **values)


def test_the_trained_head_drafts(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(each) + "\n" for each in PROMPTS))
    command = ["heads", "train", "--model", str(folder), "--prompts", str(prompts), "--quiet"]
    command += ["--vocabulary", "64", "--epochs", "2", "--tokens", "1000"]
    assert main([*command, "--minutes", "0"]) == 130
    assert "continues from here" in capsys.readouterr().out
    assert not (folder / "mtp.safetensors").exists()
    assert main(command) == 0
    assert "first: " in capsys.readouterr().out
    entry = Catalogue(Machine(1 << 40, expands=True)).take(str(folder))
    assert "MTP head included" in _facts(entry)

    engine = Engine()
    engine.load(str(folder))
    engine.loaded.eos = frozenset()
    try:
        head = load_head(engine.loaded.model, folder)
        assert isinstance(head, MtpHead), head
        assert len(head.vocabulary) <= 64
        prompt = list(range(10, 60))
        expected, _ = run(engine, prompt, drafting(**{"drafting.drafter": "off"}))
        for drafter in ("mtp", "auto"):
            engine.forget()
            got, finished = run(engine, prompt, drafting(**{"drafting.drafter": drafter}))
            assert got == expected
            assert finished.effective.drafter == drafter
        engine.forget()
        _, finished = run(engine, prompt, drafting())
        assert finished.stats.drafted > 0
    finally:
        engine.close()


def test_a_damaged_vocabulary_is_refused(tmp_path: Path) -> None:
    """MLX would read rows out of bounds."""
    model = toy_model()
    write_toy_model(tmp_path)
    head = MtpHead(model.layers[0], 32, 1e-5, hidden_first=False, vocabulary=[3, 4])
    path = tmp_path / "mtp.safetensors"
    save_head(head, path, TrainedHead(model="toy", seed=0, steps=1, seconds=1.0, answers=1, tokens=1))
    assert isinstance(load_head(model, tmp_path), MtpHead)
    tensors: Any = mx.load(str(path))
    for ids in ([5, 4], [3, 260], []):
        tensors["draftlight_head.vocabulary"] = mx.array(ids, dtype=mx.uint32)
        mx.save_safetensors(str(path), tensors)
        assert "ascending list of ids below 260" in str(load_head(model, tmp_path))
