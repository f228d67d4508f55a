"""Heads of every kind compute what mlx-vlm's do: outputs recorded by tests.tuning.head_oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.models.gemma4_text import DecoderLayer, ModelArgs

from core.heads.assistant import _Keys
from core.heads.draft_head import DraftHead
from core.heads.head_loader import load_head
from core.kv.mlx_lm_caches import is_window
from core.models.loader import load
from tests.core.architectures import WINDOW_TOKENS
from tests.core.headed_models import Layout, write_headed_model
from tests.core.published_heads import (
    BLOCKS,
    CASES,
    MTP_CASES,
    RECORDED,
    assistant_config,
    inputs,
    write_drafted_model,
)
from tests.tuning.head_oracle import EVERY


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_outputs_equal_the_recorded_ones(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    recorded = json.loads(RECORDED.read_text("utf-8"))[name]
    if name in MTP_CASES:
        write_headed_model(tmp_path / "Tiny", name, Layout("mtp.safetensors"))
    else:
        write_drafted_model(tmp_path / "Tiny", name)
    model: Any = load(str(tmp_path / "Tiny")).model
    given = {key: mx.array(value) for key, value in inputs(name).items()}
    getattr(model, "language_model", model).model.embed_tokens.weight = given["embedding"]
    head = load_head(model, tmp_path / "Tiny")
    assert isinstance(head, DraftHead), head
    got = guesses(head, model, given, len(recorded["tokens"]))
    assert [int(row.argmax()) for row in got] == recorded["tokens"]
    for row, expected in zip(got, recorded["logits"]):
        assert np.abs(row[::EVERY] - expected).max() < 1e-4


def test_a_draft_window_limits_what_all_layers_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    config = BLOCKS["dflash-few-rows"][1]["dflash_config"]
    monkeypatch.setitem(config, "draft_window_size", 3)
    write_drafted_model(tmp_path / "Tiny", "dflash-few-rows")
    model: Any = load(str(tmp_path / "Tiny")).model
    head = load_head(model, tmp_path / "Tiny")
    assert isinstance(head, DraftHead), head
    given = {key: mx.array(value) for key, value in inputs("dflash-few-rows").items()}
    whole = guesses(head, model, given, 3)
    rows = len(given["ids"])
    for changed in range(rows):
        # Row i of the head comes from state i.
        states = mx.where(mx.arange(rows)[:, None] == changed, -given["states"], given["states"])
        others = guesses(head, model, {**given, "states": states}, 3)
        assert np.allclose(whole, others) == (changed < rows - 3)


def guesses(head: DraftHead, model: Any, given: dict[str, mx.array], count: int) -> list[Any]:
    """Logits of `count` guesses, with the least −1 where a head scores no token."""
    ids, states = given["ids"][None], head.fuse(given["states"][None])
    if head.new_cache is not None:
        cache: Any = head.new_cache()
    else:
        ids, states, cache = ids[:, -1:], states[:, -1:], filled(model, given)
    if head.block is not None:
        head.step(ids[:, :-1], states[:, :-1], cache)
        return [np.array(row) for row in head.block(ids[:, -1:], states[:, -1:], cache, count)[0]]
    found = []
    for _ in range(count):
        hidden, states = head.step(ids, states, cache)
        logits, columns = head.output(hidden[:, -1:])
        row = np.array(logits[0, -1])
        if columns is not None:
            every = np.full(len(given["embedding"]), row.min() - 1.0)
            every[np.array(columns)] = row
            row = every
        found.append(row)
        ids, states = mx.array([[int(row.argmax())]]), states[:, -1:]
    return found


def filled(model: Any, given: dict[str, mx.array]) -> Any:
    """A cache of the model whose last entry of each type has the given keys; the others have none."""
    cache = make_prompt_cache(model)
    last = {layer.layer_type: entry for layer, entry in zip(model.layers, cache)}
    for kind, entry in last.items():
        entry.update_and_fetch(given[f"{kind}.keys"], given[f"{kind}.values"])
    return cache


def test_an_assistant_sees_the_window_that_a_plain_step_would(tmp_path: Path) -> None:
    write_drafted_model(tmp_path / "Tiny", "gemma4")
    model: Any = load(str(tmp_path / "Tiny")).model
    head = load_head(model, tmp_path / "Tiny")
    assert isinstance(head, DraftHead)
    given = {key: mx.array(value) for key, value in inputs("gemma4").items()}
    for kind in ("full_attention", "sliding_attention"):
        for part in ("keys", "values"):
            given[f"{kind}.{part}"] = mx.concatenate([given[f"{kind}.{part}"]] * 2, axis=2)
    columns = given["sliding_attention.keys"].shape[2]
    assert columns > WINDOW_TOKENS
    cache, other = filled(model, given), filled(model, given)
    for entry in other:
        if entry.keys is not None and is_window(entry):
            entry.keys = entry.keys[..., -WINDOW_TOKENS:, :]
            entry.values, entry._idx = entry.values[..., -WINDOW_TOKENS:, :], WINDOW_TOKENS
    step = given["ids"][None, -1:], given["states"][None, -1:]
    found, expected = head.step(*step, cache)[0], head.step(*step, other)[0]
    assert mx.array_equal(found, expected).item()
    other[-2].keys = other[-2].keys + 1.0
    assert not mx.array_equal(found, head.step(*step, other)[0]).item()


def test_an_assistant_attends_into_a_quantised_cache() -> None:
    config = assistant_config("gemma4")["text_config"]
    args = ModelArgs.from_dict(
        {**config, "head_dim": 64, "global_head_dim": 64, "layer_types": ["full_attention"] * 4}
    )
    layer = DecoderLayer(args, 0)
    entry = KVCache()
    keys = mx.random.normal((1, 1, 9, 64))
    entry.update_and_fetch(keys, keys)
    outputs = []
    for each in (entry, entry.to_quantized(group_size=32, bits=8)):
        held = _Keys(each)
        assert held.position == 8
        outputs.append(
            layer(mx.ones((1, 1, 24)), None, held, None, (held.keys, held.values), held.position)[0]
        )
    assert 0.0 < mx.abs(outputs[0] - outputs[1]).max().item() < 0.05 * mx.abs(outputs[0]).max().item()
