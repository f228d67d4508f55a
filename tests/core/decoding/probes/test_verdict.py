"""Verdicts are kept apart, found again, and nothing is tried before a first token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlx_lm.utils import MODEL_ARCHITECTURE_REMAPPING, MODEL_REMAPPING
from msgspec.structs import replace

import core.decoding.probes.verdict as verdict_module
import core.engine.machine_profile as measured_module
from core.decoding.probes.split_probe import Splits
from core.decoding.probes.verdict import NOT_TRIED, Verdict, is_tried, load_verdict, save_verdict, verdict_key
from core.engine.engine import Engine
from core.events import Finished, ModelInfo
from core.models.loader import LoadedModel
from core.settings import Settings, assign_all
from tests.core.architectures import ARCHITECTURES

INFO = ModelInfo("x", "", "f", "F", "llama", "float32", "", 10, 20, 512, 260, 2, True)


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    return tmp_path


def asked(engine: Engine, **values: object) -> Finished:
    settings = assign_all(Settings(), {"sampling.max_tokens": 8, **values}.items())
    *_, finished = engine.generate_ids([5, 6, 7, 8] * 8, settings)
    assert isinstance(finished, Finished)
    return finished


@pytest.fixture
def engine(toy_engine: Engine) -> Engine:
    engine = Engine()
    engine.use(toy_engine.loaded)
    return engine


def test_a_verdict_is_found_again_and_a_spoilt_one_is_not(home: Path) -> None:
    found = Verdict(verdict_key(INFO), "its trees fall", Splits(64, "it splits"))
    assert load_verdict(INFO) is None
    save_verdict(found)
    assert load_verdict(INFO) == found
    assert load_verdict(replace(INFO, dtype="bfloat16")) is None
    (path,) = (home / "cache" / "profiles").iterdir()
    path.write_bytes(path.read_bytes()[:20])
    assert load_verdict(INFO) is None


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
    save_verdict(Verdict(verdict_key(info), "", Splits(50, "its mask is wider than its window")))
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
