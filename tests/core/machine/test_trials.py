"""Trials of models: verdicts are saved and found, trees and splits are tested at run time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models.cache import RotatingKVCache, make_prompt_cache
from mlx_lm.utils import MODEL_ARCHITECTURE_REMAPPING, MODEL_REMAPPING, _get_classes
from msgspec.structs import replace

import core.machine.profile as measured_module
import core.machine.trials as tree_probe
import core.machine.trials as verdict_module
from core.decoding.tree import TreeRows
from core.engine.engine import Engine
from core.events import Finished, ModelInfo
from core.machine.trials import (
    NOT_TRIED,
    VERDICTS,
    Splits,
    Verdict,
    is_tried,
    load_verdict,
    try_splits,
    try_trees,
    verdict_key,
)
from core.models.loader import LoadedModel
from core.models.parts import Rotation
from core.settings import Settings, assign_all
from tests.core.architectures import ARCHITECTURES, build, tiny
from tests.core.engine.support import written
from tests.core.toy import toy_model
from tests.thinned import thinned

INFO = ModelInfo("x", "", "f", "F", "llama", "float32", "", 10, 20, 512, 260, 2, True)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    return tmp_path


def why_no_trees(model: nn.Module, cache: Any) -> str:
    return str(measured_module.finished(try_trees(model, cache)))


def asked(engine: Engine, **values: object) -> Finished:
    settings = assign_all(Settings(), {"sampling.max_tokens": 8, **values}.items())
    return written(engine.generate_ids([5, 6, 7, 8] * 8, settings))[1]


@pytest.fixture
def engine(toy_engine: Engine) -> Engine:
    engine = Engine()
    engine.use(toy_engine.loaded)
    return engine


def test_a_verdict_is_found_again(home: Path) -> None:
    found = Verdict(verdict_key(INFO), "its trees fall", Splits(64, "it splits"))
    assert load_verdict(INFO) is None
    VERDICTS.save(found)
    assert load_verdict(INFO) == found
    assert load_verdict(replace(INFO, dtype="bfloat16")) is None


def test_two_copies_of_a_model_have_one_verdict(tmp_path: Path) -> None:
    config = {"model_type": "llama", "rope_theta": 10000.0}
    for name in ("one", "two", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    (tmp_path / "two" / "config.json").write_text(json.dumps(config, indent=2))
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "rope_theta": 5.0}))
    one, two, other = (verdict_key(replace(INFO, path=str(tmp_path / n))) for n in ("one", "two", "other"))
    assert one == two != other


def test_scaling_by_length_is_not_known_to_be_fine(tmp_path: Path) -> None:
    info = replace(INFO, path=str(tmp_path))
    for config, tried in (
        ({}, True),
        ({"rope_scaling": None}, True),
        ({"rope_scaling": {"type": "dynamic"}}, False),
        ({"text_config": {"rope_parameters": {"rope_type": "dynamic"}}}, False),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert is_tried(info) == tried
    assert not is_tried(replace(INFO, architecture="from-next-year"))


def test_another_name_of_a_tried_architecture_is_tried(tmp_path: Path) -> None:
    tried = verdict_module._tried()
    for name, module in MODEL_REMAPPING.items():
        assert is_tried(replace(INFO, architecture=name)) == (module in tried), name
    assert is_tried(replace(INFO, architecture="kimi_k2"))
    # The class decides, where one model type has several.
    for (name, model_class), module in MODEL_ARCHITECTURE_REMAPPING.items():
        (tmp_path / "config.json").write_text(json.dumps({"architectures": [model_class]}))
        info = replace(INFO, path=str(tmp_path), architecture=name)
        assert is_tried(info) == (module in tried)


def test_a_verdict_bounds_the_context() -> None:
    verdict = Verdict("key", "", Splits(1024, "its mask is wider than its window"))
    assert verdict.why_not_split(1024) == ""
    assert "mask" in verdict.why_not_split(1025)
    assert Verdict("key", "", Splits()).why_not_split(10**9) == ""


def test_nothing_is_tried_before_the_first_token(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> object:
        raise AssertionError("tried while somebody waits")

    for name in ("try_splits", "try_trees", "measure"):
        monkeypatch.setattr(measured_module, name, never)
    effective = asked(engine).effective
    assert effective.drafter == "auto"
    assert [change.reason for change in effective.changes] == [NOT_TRIED]


def test_idle_time_brings_the_verdict_and_it_lasts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = 0
    while engine.idle_work():
        pieces += 1
    assert pieces > 8
    assert asked(engine).effective.changes == ()
    other = Engine()
    other.use(engine.loaded)
    assert asked(other).effective.changes == ()
    held = load_verdict(engine.loaded.info)
    assert held is not None
    assert (held.why_no_trees, held.splits) == ("", Splits())


def test_a_question_right_after_an_answer_waits_for_no_measurement(toy_engine: Engine) -> None:
    now_s = 100.0
    engine = Engine(clock=lambda: now_s)
    engine.use(toy_engine.loaded)
    asked(engine)
    assert not engine.idle_work()
    now_s += engine.idle_due_s() or 0.0
    assert 100.5 <= now_s <= 105.0
    assert engine.idle_work()


def test_an_architecture_that_nobody_tried_waits_for_its_verdict(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_module, "_tried", frozenset)
    first, again = asked(engine).effective, asked(engine).effective
    assert first.drafter == again.drafter == "off"
    assert f"cannot speculate: {NOT_TRIED}" in first.changes[0].reason
    assert [change.setting for change in again.changes] == ["drafting.drafter", "prefix cache"]
    engine.try_out()
    assert asked(engine).effective.drafter == "auto"


def test_past_what_agreed_nothing_is_drafted_or_reused(engine: Engine) -> None:
    info = engine.loaded.info
    VERDICTS.save(Verdict(verdict_key(info), "", Splits(50, "its mask is wider than its window")))
    engine.use(LoadedModel(engine.loaded.model, engine.loaded.tokenizer, info))
    assert asked(engine).effective.drafter == "auto"
    finished = asked(engine)
    assert finished.stats.reused_tokens == 31
    finished = asked(engine, **{"sampling.max_tokens": 19})
    assert finished.effective.drafter == "off"
    assert finished.stats.reused_tokens == 0
    assert all("wider than its window" in change.reason for change in finished.effective.changes)
    assert asked(engine, **{"sampling.max_tokens": 18}).effective.drafter == "auto"


def test_architectures_that_conformance_tries_are_known_to_be_fine() -> None:
    """The others of the list are held to `docs/models.md`, see `tests.attack.test_models_table`."""
    assert verdict_module._tried() > set(ARCHITECTURES)


REASONS = {
    "ministral3": "differ from its answers to the tree's branches",
    "qwen3_5": "recurrent state",
    "nemotron_h": "recurrent state",
    "granitemoehybrid": "recurrent state",
    "llama4": "ChunkedKVCache",
}


def why(model: nn.Module) -> str:
    return why_no_trees(model, make_prompt_cache(model))


@pytest.mark.sweep
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_trees_are_refused_where_they_are_not_exact(name: str) -> None:
    reason = why(tiny(name))
    assert (reason == "") == ARCHITECTURES[name].trees
    assert REASONS.get(name, "") in reason


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("tokens", [8192, 16384])
def test_a_scale_that_changes_far_away_is_found(tokens: int, dtype: mx.Dtype) -> None:
    """Ministral's own figures: nothing to be seen in a short context."""
    config = dict(ARCHITECTURES["ministral3"].config)
    config["rope_parameters"] = {
        **config["rope_parameters"],
        "original_max_position_embeddings": tokens,
        "llama_4_scaling_beta": 0.1,
    }
    model = build(config, 2.0)
    model.set_dtype(dtype)
    assert f"near {tokens:,} tokens" in why(model)


def test_dynamic_rope_cannot_take_a_position_a_row() -> None:
    assert "a trial tree failed" in why(toy_model(rope_scaling={"type": "dynamic", "factor": 2.0}))


def test_learned_positions_are_found() -> None:
    sizes = {"n_ctx": 512, "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 512, "vocab_size": 260}
    config = {"model_type": "gpt2", "layer_norm_epsilon": 1e-5, **sizes}
    assert "branches" in why(build(config, 3.0))


def test_rotations_that_were_missed_or_are_never_called_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a rotary module not recognised, trees would be off, not silently wrong."""
    monkeypatch.setattr(tree_probe, "rotations", lambda model: [])
    assert "branches" in why(tiny("llama"))
    aside: dict[str, Any] = {"rope": nn.RoPE(8)}
    monkeypatch.setattr(tree_probe, "rotations", lambda model: [Rotation(aside, "rope", aside["rope"])])
    assert "called none of them" in why(tiny("llama"))


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
def test_wrong_positions_are_outside_the_tolerance(dtype: mx.Dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("qwen3")
    model.set_dtype(dtype)
    assert why(model) == ""
    monkeypatch.setattr(TreeRows, "positions", lambda rows, offset: mx.arange(rows.size) + offset)
    assert "branches" in why(model)


def test_a_window_that_keeps_its_first_tokens_has_no_trees() -> None:
    model = tiny("llama")
    cache = [RotatingKVCache(max_size=16, keep=4) for _ in make_prompt_cache(model)]
    assert "no mask that a tree could replace" in why_no_trees(model, cache)


def test_a_quantised_session_is_probed_quantised() -> None:
    """Attention sinks know no quantised cache, so such a session's probe must fail, and say so."""
    sinks = build({**ARCHITECTURES["gpt_oss"].config, "head_dim": 32}, 2.0)
    cache = make_prompt_cache(sinks)
    assert why_no_trees(sinks, cache) == ""
    cache[1] = cache[1].to_quantized(group_size=32, bits=8)
    assert "sinks" in why_no_trees(sinks, cache)
    model = toy_model(head_dim=32)
    quantised = [entry.to_quantized(group_size=32, bits=8) for entry in make_prompt_cache(model)]
    assert why_no_trees(model, quantised) == ""


def test_the_session_is_left_alone() -> None:
    model = tiny("gemma3_text")
    cache = make_prompt_cache(model)
    model(mx.array([[1, 2, 3]]), cache=cache)
    mx.random.seed(1)
    before = [dict(vars(entry)) for entry in cache]
    noise = [state.tolist() for state in mx.random.state]
    assert why_no_trees(model, cache) == ""
    assert all(now[key] is then[key] for then, now in zip(before, map(vars, cache)) for key in then)
    assert [list(vars(entry)) for entry in cache] == [list(then) for then in before]
    assert [state.tolist() for state in mx.random.state] == noise


_SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "vocab_size": 260,
}
PLAMO3 = {**_SMALL, "model_type": "plamo3", "head_dim": 8, "sliding_window_pattern": 2}
INTERNLM2 = {**_SMALL, "model_type": "internlm2", "rope_scaling": {"type": "dynamic", "factor": 2.0}}
PHI3SMALL = {
    **_SMALL,
    "model_type": "phi3small",
    "dense_attention_every_n_layers": 2,
    "ff_intermediate_size": 64,
    "gegelu_limit": 20.0,
    "layer_norm_epsilon": 1e-5,
    "vocab_size": 100352,  # its code forbids ids up to 100,351
}


def tried(model: nn.Module, context_tokens: int = 4096) -> Splits:
    def new_cache() -> list[Any]:
        return list(make_prompt_cache(model))

    return measured_module.finished(try_splits(model, new_cache, context_tokens))


@pytest.mark.sweep
@pytest.mark.parametrize("name", thinned(ARCHITECTURES, keep=["llama", "qwen3_5"]))
def test_nothing_is_found_where_there_is_nothing(name: str) -> None:
    assert tried(tiny(name), 131072) == Splits()


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("window", "agreed"), [(16, 0), (2048, 1024)])
def test_a_mask_wider_than_its_window_is_found(window: int, agreed: int, dtype: mx.Dtype) -> None:
    model = build({**PLAMO3, "window_size": window}, 2.0)
    model.set_dtype(dtype)
    found = tried(model)
    assert found.agreed_tokens == agreed
    assert f"near {max(64, window):,} tokens" in found.reason


@pytest.mark.parametrize(("length", "agreed"), [(64, 0), (32768, 16384)])
def test_keys_that_depend_on_the_length_are_found(length: int, agreed: int) -> None:
    found = tried(build({**INTERNLM2, "max_position_embeddings": length}, 2.0), 2 * length)
    assert found.agreed_tokens == agreed
    assert f"near {length:,} tokens" in found.reason


def test_lengths_beyond_the_context_do_not_matter() -> None:
    assert tried(build({**INTERNLM2, "max_position_embeddings": 2048}, 2.0), 1024) == Splits()


def test_a_mask_that_hides_nothing_is_found() -> None:
    """mlx-lm adds this model's mask, which says yes and no, to the scores: a block's rows see each other."""
    mx.random.seed(0)
    model_class, args_class = _get_classes(PHI3SMALL)
    found = tried(model_class(args_class.from_dict(PHI3SMALL)))
    assert found.agreed_tokens == 0
    assert "near 64 tokens" in found.reason


def test_a_model_that_fails_at_a_block_is_refused() -> None:
    class OneByOne(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tiny("llama")
            self.layers = self.inner.layers

        def __call__(self, ids: mx.array, cache: Any = None) -> mx.array:
            if ids.shape[1] == 6:
                raise ValueError("no blocks of six")
            return self.inner(ids, cache=cache)

    found = tried(OneByOne())
    assert found.agreed_tokens == 0
    assert "no blocks of six" in found.reason


# ---- rounding as on a GPU, whose kernels depend on the number of rows


@pytest.fixture
def kernels_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of more than three rows are multiplied in two halves, which rounds differently."""
    of_few = nn.Linear.__call__

    def multiply(self: nn.Linear, x: mx.array) -> mx.array:
        if x.size // x.shape[-1] <= 3:
            return of_few(self, x)
        half = x.shape[-1] // 2
        return x[..., :half] @ self.weight[:, :half].T + x[..., half:] @ self.weight[:, half:].T

    monkeypatch.setattr(nn.Linear, "__call__", multiply)


def deep(weight_scale: float) -> nn.Module:
    """Sixteen layers in bfloat16."""
    model = build({**ARCHITECTURES["llama"].config, "num_hidden_layers": 16}, weight_scale)
    model.set_dtype(mx.bfloat16)
    return model


@pytest.mark.sweep
@pytest.mark.usefixtures("kernels_by_rows")
@pytest.mark.parametrize("weight_scale", [1.0, 2.0])
def test_rounding_of_16_bits_is_no_difference(weight_scale: float) -> None:
    """On an H100 two percent were too few for 32 layers in bfloat16, and nothing was drafted."""
    model = deep(weight_scale)
    assert tried(model) == Splits()
    assert why_no_trees(model, make_prompt_cache(model)) == ""


@pytest.mark.usefixtures("kernels_by_rows")
def test_faults_are_found_beyond_rounding() -> None:
    masks = build({**PLAMO3, "window_size": 16}, 2.0)
    masks.set_dtype(mx.bfloat16)
    assert tried(masks).agreed_tokens == 0
    by_index = tiny("ministral3")
    by_index.set_dtype(mx.bfloat16)
    assert why_no_trees(by_index, make_prompt_cache(by_index))
