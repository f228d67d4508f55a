"""Rehearsal while idle: off unless wanted, gone the moment something is asked, on again after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.cli import main
from core.drafting.drafter import Drafter
from core.drafting.gram_table import GramTable
from core.drafting.registry import DRAFTERS, Resources, drafter_spec
from core.engine import Engine
from core.events import Finished, Generate, Message
from core.models.loader import LoadedModel
from core.rehearsal import idle
from core.rehearsal.records import Records, read_records
from core.settings import Settings, assign_all
from core.tables.built import rehearsal_paths


@pytest.fixture
def engine(toy: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"say {i}"}) + "\n" for i in range(6)))
    monkeypatch.setattr(idle, "default_conversations", lambda: prompts)
    engine = Engine()
    engine.use(toy)
    engine.measure_cost()
    return engine


def ask(engine: Engine, *, rehearse: bool) -> Finished:
    wanted = [("tables.rehearse", rehearse), ("sampling.max_tokens", 5), ("drafting.drafter", "auto")]
    settings = assign_all(Settings(), wanted)
    *_, last = engine.generate(Generate("r", (Message("user", "hello"),), settings))
    assert isinstance(last, Finished)
    return last


def answers(toy: LoadedModel) -> int:
    return len(list(read_records(rehearsal_paths(toy.info.name)[0])))


def test_off_by_default(engine: Engine, toy: LoadedModel) -> None:
    assert not Settings().tables.rehearse
    assert not engine.idle_work()
    ask(engine, rehearse=False)
    assert not engine.idle_work()
    assert not rehearsal_paths(toy.info.name)[0].parent.exists()


def test_it_answers_and_makes_a_table_while_idle(engine: Engine, toy: LoadedModel) -> None:
    ask(engine, rehearse=True)
    while engine.idle_work():
        pass
    assert answers(toy) == 6
    assert rehearsal_paths(toy.info.name)[1].exists()
    assert not engine.idle_work(), "it is done"


def test_the_next_answer_goes_by_the_new_table(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[GramTable | None] = []
    spec = drafter_spec("auto")

    def build(settings: Settings, resources: Resources) -> Drafter:
        taken.append(resources.continuations)
        return spec.build(settings, resources)

    monkeypatch.setitem(DRAFTERS, "auto", replace(spec, build=build))
    ask(engine, rehearse=True)
    while engine.idle_work():
        pass
    ask(engine, rehearse=True)
    assert taken[0] is None
    assert taken[1] is not None
    assert len(taken[1]) > 10


def test_a_question_ends_it_and_the_next_quiet_moment_goes_on(engine: Engine, toy: LoadedModel) -> None:
    ask(engine, rehearse=True)
    while answers(toy) < 2:
        assert engine.idle_work()
    before = answers(toy)
    first = ask(engine, rehearse=True)
    with Records(rehearsal_paths(toy.info.name)[0]):
        pass  # the file is free while an answer is written
    assert engine.idle_work()
    ask(engine, rehearse=False)
    assert not engine.idle_work()
    assert answers(toy) >= before
    last = ask(engine, rehearse=True)
    assert last.stats.tokens == first.stats.tokens > 0
    while engine.idle_work():
        pass
    assert answers(toy) == 6


def test_what_stops_it_is_said(engine: Engine, toy: LoadedModel) -> None:
    ask(engine, rehearse=True)
    with Records(rehearsal_paths(toy.info.name)[0]):
        assert not engine.idle_work()
    changes = {change.setting: change for change in ask(engine, rehearse=True).effective.changes}
    assert "another Draftlight" in changes["tables.rehearse"].reason


def test_the_setting_has_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompt", "x", "--set", "tables.rehearse=perhaps"]) == 2
    assert "tables.rehearse" in capsys.readouterr().err
