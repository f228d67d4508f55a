"""Rehearsal while idle: off unless wanted, still while somebody types, gone once something is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.drafting.draft import Drafter
from core.drafting.gram_table import Continuations
from core.drafting.registry import DRAFTERS, Resources, drafter_spec
from core.engine.engine import Engine
from core.errors import NoModelError, TableError
from core.events import Finished, Generate, Message, Rehearsing
from core.models.loader import LoadedModel
from core.rehearsal.rehearsal import IdleRehearsal
from core.rehearsal.streams import Records, read_records
from core.settings import Settings, assign_all
from core.tables.prebuilt import rehearsal_paths


@pytest.fixture
def said() -> list[Rehearsing]:
    """What is said of the rehearsal, oldest first."""
    return []


@pytest.fixture
def engine(
    toy: LoadedModel, said: list[Rehearsing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Engine:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"say {i}"}) + "\n" for i in range(6)))
    monkeypatch.setattr("core.rehearsal.rehearsal.default_conversations", lambda: prompts)
    engine = Engine(say=said.append)
    engine.use(toy)
    while engine.idle_work():  # what is tried out and timed once; no rehearsal is wanted yet
        pass
    return engine


def ask(engine: Engine) -> Finished:
    settings = assign_all(Settings(), [("sampling.max_tokens", 5), ("drafting.drafter", "auto")])
    *_, last = engine.generate(Generate("r", (Message("user", "hello"),), settings))
    assert isinstance(last, Finished)
    return last


def answers(toy: LoadedModel) -> int:
    return len(list(read_records(rehearsal_paths(toy.info.name)[0])))


def states(said: list[Rehearsing]) -> list[str]:
    """Each state once, with what it waits for."""
    names = [f"{one.state} {one.waits_for}".strip() for one in said]
    return [name for name, before in zip(names, ["", *names]) if name != before]


def test_off_by_default(engine: Engine, toy: LoadedModel, said: list[Rehearsing]) -> None:
    assert not engine.idle_work()
    ask(engine)
    assert not engine.idle_work()
    assert not rehearsal_paths(toy.info.name)[0].parent.exists()
    assert said == []


def test_it_answers_and_makes_a_table_while_idle(
    engine: Engine, toy: LoadedModel, said: list[Rehearsing]
) -> None:
    engine.rehearse(True)
    while engine.idle_work():
        pass
    assert answers(toy) == 6
    assert rehearsal_paths(toy.info.name)[1].exists()
    assert not engine.idle_work(), "it is done"
    assert states(said) == ["waiting", "running", "done"]
    last = said[-1]
    assert (last.model, last.answered, last.prompts) == (toy.info.name, 6, 6)
    assert last.tokens == sum(len(s.out) for s in read_records(rehearsal_paths(toy.info.name)[0])) > 0
    assert last.contexts > 10


def test_what_was_done_before_counts(engine: Engine, said: list[Rehearsing]) -> None:
    engine.rehearse(True)
    while engine.idle_work():
        pass
    first = said[-1]
    engine.rehearse(False)
    assert said[-1].state == "off"
    engine.rehearse(True)
    while engine.idle_work():
        pass
    assert (said[-1].state, said[-1].answered, said[-1].tokens) == ("done", 6, first.tokens)


def test_the_next_answer_goes_by_the_new_table(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Continuations | None] = []
    spec = drafter_spec("auto")

    def build(settings: Settings, resources: Resources) -> Drafter:
        taken.append(resources.continuations)
        return spec.build(settings, resources)

    monkeypatch.setitem(DRAFTERS, "auto", replace(spec, build=build))
    ask(engine)
    engine.rehearse(True)
    while engine.idle_work():
        pass
    ask(engine)
    assert taken[0] is None
    assert taken[1] is not None
    assert len(taken[1].lookup([])) == 1


def test_a_question_ends_it_and_the_next_quiet_moment_goes_on(
    engine: Engine, toy: LoadedModel, said: list[Rehearsing]
) -> None:
    engine.rehearse(True)
    while answers(toy) < 2:
        assert engine.idle_work()
    before = answers(toy)
    first = ask(engine)
    assert states(said) == ["waiting", "running", "waiting answer", "waiting"]
    with Records(rehearsal_paths(toy.info.name)[0]):
        pass  # the file is free once it is asked
    assert answers(toy) >= before
    last = ask(engine)
    assert last.stats.tokens == first.stats.tokens > 0
    while engine.idle_work():
        pass
    assert answers(toy) == 6


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_while_somebody_types_it_stands_still_and_loses_nothing(
    engine: Engine, toy: LoadedModel, said: list[Rehearsing]
) -> None:
    clock = Clock()
    rehearsal = IdleRehearsal(said.append, clock)
    rehearsal.want("toy", True)
    for _ in range(4):
        assert rehearsal.piece(toy)
    rehearsal.hold()
    assert states(said)[-1] == "waiting quiet"
    held_s = rehearsal.due_s()
    assert held_s > 1
    for _ in range(5):
        assert not rehearsal.piece(toy), "nothing is done while somebody types"
    clock.now_s += held_s - 0.1
    rehearsal.hold()
    clock.now_s += held_s - 0.1
    assert not rehearsal.piece(toy), "it counts from the last key"
    with pytest.raises(TableError, match="another Draftlight"), Records(rehearsal_paths(toy.info.name)[0]):
        pass  # the same work is under way all the time
    clock.now_s += 0.2
    assert rehearsal.due_s() == 0
    while rehearsal.piece(toy):
        pass
    assert states(said)[-2:] == ["running", "done"]
    assert answers(toy) == 6


def test_typing_reaches_it(engine: Engine, said: list[Rehearsing]) -> None:
    engine.typing()
    assert said == [], "of one that is not wanted nothing is said"
    engine.rehearse(True)
    assert states(said) == ["waiting quiet"]
    assert not engine.idle_work()
    due_s = engine.idle_due_s()
    assert due_s is not None
    assert due_s > 1


def test_it_says_its_progress_once_a_second(engine: Engine, toy: LoadedModel, said: list[Rehearsing]) -> None:
    clock = Clock()
    rehearsal = IdleRehearsal(said.append, clock)
    rehearsal.want("toy", True)
    while rehearsal.piece(toy):
        pass
    assert len(said) == 4, "waiting, running, a table is made, done: no time passed"
    for path in rehearsal_paths(toy.info.name):
        path.unlink()
    said.clear()
    rehearsal.want("toy", True)
    while rehearsal.piece(toy):
        clock.now_s += 1.0
    counts = [one.tokens for one in said if one.state == "running"]
    assert len(set(counts)) > 2
    assert counts == sorted(counts)


def test_what_stops_it_is_said_and_turning_it_on_again_tries_again(
    engine: Engine, toy: LoadedModel, said: list[Rehearsing]
) -> None:
    engine.rehearse(True)
    with Records(rehearsal_paths(toy.info.name)[0]):
        assert not engine.idle_work()
    assert said[-1].state == "failed"
    assert "another Draftlight" in said[-1].trouble
    assert not engine.idle_work()
    engine.rehearse(True)
    assert engine.idle_work()


def test_it_is_wanted_of_one_model(engine: Engine, toy: LoadedModel, said: list[Rehearsing]) -> None:
    engine.rehearse(True)
    assert engine.idle_work()
    engine.use(toy)
    assert said[-1].state == "off"
    assert not engine.idle_work() or not rehearsal_paths(toy.info.name)[1].exists()
    engine.unload()
    with pytest.raises(NoModelError):
        engine.rehearse(True)
