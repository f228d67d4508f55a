"""A frozen table in the engine: asked for by file, used, or refused with words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.errors import TableError
from core.machine.width_cost import LiveCost
from core.tables.prebuilt import built_dir, save_frozen
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.drafting.support import frozen_table
from tests.core.engine.test_engine import ids, run, settings


def write(path: Path, text: list[int], family: str, leader_tokens: int = 1) -> Path:
    save_frozen(
        frozen_table(text, leader_tokens, 3), path, family=family, family_name="Toy", learned_from="a test"
    )
    return path


def cacheback(path: Path | str, **values: object) -> dict[str, object]:
    return {"drafting.drafter": "cacheback", "cacheback.frozen_file": str(path), **values}


def test_it_drafts_what_it_has_seen(
    toy_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A planner that times its steps drafts less where another process takes the core in between.
    monkeypatch.setattr(LiveCost, "step", lambda *step, **kind: None)
    prompt = prompt_with_repetition(random.Random(0))
    expected, _ = run(toy_engine, prompt, settings(**{"drafting.drafter": "off"}))
    path = write(tmp_path / "toy.frozen", prompt + ids(expected), toy_engine.loaded.info.family)
    accepted = []
    for mode in ("frozen", "dual", "dynamic"):
        toy_engine.forget()
        got, finished = run(toy_engine, prompt, settings(**cacheback(path, **{"cacheback.mode": mode})))
        assert ids(got) == ids(expected)
        assert finished.effective.changes == ()
        accepted.append(finished.stats.accepted)
    assert accepted[0] > accepted[2], "a table of the answer itself must beat an empty one"
    assert accepted[1] >= accepted[2]


def test_without_a_table_the_answer_says_what_ran(toy_engine: Engine) -> None:
    _, finished = run(toy_engine, [5, 6, 7, 8] * 6, settings(**{"drafting.drafter": "cacheback"}))
    (change,) = finished.effective.changes
    assert (change.setting, change.asked, change.used) == ("cacheback.mode", "dual", "dynamic")
    wanted = {"drafting.drafter": "cacheback", "cacheback.mode": "frozen"}
    _, finished = run(toy_engine, [5, 6, 7, 8] * 6, settings(**wanted))
    (change,) = finished.effective.changes
    assert (change.asked, change.used) == ("frozen", "none")
    assert "no prebuilt table" in change.reason


@pytest.mark.sweep
def test_the_familys_own_table_needs_no_name(
    toy_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    toy_engine.try_out()
    prompt = prompt_with_repetition(random.Random(0))
    expected, _ = run(toy_engine, prompt, settings(**{"drafting.drafter": "off"}))
    built_dir().mkdir(parents=True)
    write(built_dir() / "toy.frozen.safetensors", prompt + ids(expected), toy_engine.loaded.info.family)
    write(built_dir() / "other.frozen.safetensors", [1, 2, 3, 4] * 9, "0" * 64)
    write(built_dir() / "two.frozen.safetensors", [1, 2, 3, 4] * 9, toy_engine.loaded.info.family, 2)
    (built_dir() / "gone.frozen.safetensors").symlink_to(tmp_path / "gone")
    accepted = {}
    for mode in ("frozen", "dual", "dynamic"):
        toy_engine.forget()
        wanted = settings(**{"drafting.drafter": "cacheback", "cacheback.mode": mode})
        got, finished = run(toy_engine, prompt, wanted)
        assert ids(got) == ids(expected)
        assert finished.effective.changes == ()
        accepted[mode] = finished.stats.accepted
    assert accepted["frozen"] > accepted["dynamic"]
    wanted = settings(**{"drafting.drafter": "cacheback", "cacheback.leader_tokens": 3})
    (change,) = run(toy_engine, prompt, wanted)[1].effective.changes
    assert (change.asked, change.used) == ("dual", "dynamic")
    assert "leaders of 1 token" in change.reason


def test_a_damaged_table_of_the_family_is_told(
    toy_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    toy_engine.try_out()
    built_dir().mkdir(parents=True)
    (built_dir() / "bad.frozen.safetensors").write_bytes(b"nothing")
    _, finished = run(toy_engine, [5, 6, 7, 8] * 6, settings(**{"drafting.drafter": "cacheback"}))
    (change,) = finished.effective.changes
    assert (change.used, "bad.frozen.safetensors" in change.reason) == ("dynamic", True)


def test_another_familys_table_is_refused(toy_engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "foreign.frozen", [1, 2, 3, 4] * 9, "0" * 64)
    with pytest.raises(TableError, match="built for the Toy tokenizer"):
        run(toy_engine, [5, 6, 7], settings(**cacheback(path)))
    assert run(toy_engine, [5, 6, 7], settings())[0]


def test_leaders_of_another_length_are_refused(toy_engine: Engine, tmp_path: Path) -> None:
    path = write(tmp_path / "two.frozen", [1, 2, 3, 4] * 9, toy_engine.loaded.info.family, leader_tokens=2)
    with pytest.raises(TableError, match="leaders of 2 tokens"):
        run(toy_engine, [5, 6, 7], settings(**cacheback(path)))


def test_a_missing_file_is_named(toy_engine: Engine) -> None:
    with pytest.raises(TableError, match=r"none\.frozen cannot be used"):
        run(toy_engine, [5, 6, 7], settings(**cacheback("/no/such/none.frozen")))
