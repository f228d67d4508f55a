"""Whatever is heard or wanted has one rule, whatever that asks for one handler, and the docs list both."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from app.controllers.page import RunningAnswer
from app.session.turn import effects as fx
from app.session.turn.intents import Intent
from app.session.turn.link_state import Phase
from app.session.turn.turn import EFFECTS, RULES
from app.shell import handlers as module
from app.shell.window import MainWindow
from core.events import Event, Generate, Heartbeat, Message, TableStatus
from core.settings import Settings
from core.worker.client import BadLine, WorkerExited, WorkerSilent
from tests.app.controllers.messages_doc import DOC, handlers, markdown
from tests.app.session.words import failed, finished, gauges, reading, reading_map, token

# These events come only as replies to `ask()`.
REPLIES = {
    "document_embedded",
    "model_imported",
    "model_removed",
    "models_found",
    "similar_found",
    "table_done",
    "table_list",
    "texts_embedded",
    "title_suggested",
    "token_count",
    "turn_taken",
}
# Only ranks of `mlx.launch` end together, and the window is none of them.
UNUSED = {"cluster_ended"}


def test_each_input_has_a_rule_unless_it_is_a_reply() -> None:
    events = {each for each in get_args(Event) if each.__struct_config__.tag not in REPLIES | UNUSED}
    assert set(RULES) == {*events, *get_args(Intent), BadLine, WorkerExited, WorkerSilent}


def test_each_effect_has_a_handler() -> None:
    assert set(handlers().table) == EFFECTS


def test_an_effect_without_a_handler_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgotten:
        pass

    monkeypatch.setattr(module, "EFFECTS", {*EFFECTS, Forgotten})
    with pytest.raises(TypeError, match="Forgotten"):
        handlers()


def test_the_docs_list_them() -> None:
    assert DOC.read_text(encoding="utf-8") == markdown(), "Run: make messages-doc"


async def test_what_people_must_know_of_the_tables_is_on_the_banner(window: MainWindow) -> None:
    banner = window.views.banner
    window.controller.handle(TableStatus("warm", "f" * 64, "Fake"))
    assert banner.trouble is None
    window.controller.handle(TableStatus("failed", "f" * 64, "Fake", notes=("No room.",)))
    assert banner.trouble.title == "No room."


async def test_what_is_wanted_meanwhile_is_handled_afterwards(window: MainWindow) -> None:
    """A count that is wanted while a count is told was handled inside of it, before all that followed."""
    controller, told = window.controller, list[str]()
    table = controller._handlers.table

    def nested(effect: Heartbeat) -> None:
        if effect.memory_bytes == 1:
            controller.handle(Heartbeat("idle", 0.0, 2, 9))
            told.append("within the first")
        else:
            told.append("the second")

    controller.link_changed.connect(lambda link: told.append("changed"))
    table[Heartbeat] = (nested,)
    table[fx.SilenceBroken] = (lambda effect: None,)
    table[fx.WorkerStuck] = (lambda effect: None,)
    controller.handle(WorkerSilent(9.0))
    told.clear()
    controller.handle(Heartbeat("idle", 0.0, 1, 9))
    assert told == ["within the first", "changed", "the second"]


async def test_an_effect_that_fails_keeps_no_other_one_back(window: MainWindow) -> None:
    controller = window.controller

    def fail(effect: fx.AnswerBegun) -> None:
        raise ValueError("a bug in a handler")

    sent: list[object] = []
    controller._handlers.table[fx.AnswerBegun] = (fail,)
    controller._handlers.table[fx.Send] = (sent.append,)
    with pytest.raises(ValueError, match="a bug in a handler"):
        controller.handle(Generate("r", (Message("user", "write 3"),), Settings()))
    assert len(sent) == 1
    assert controller.link.phase is Phase.READING
    controller._handlers.table[fx.AnswerCutOff] = (lambda effect: None,)


class Recorded:
    """A listener that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *told, **named: self.told.append((name, *told, *named.values()))


@pytest.fixture
def asked() -> dict[str, Recorded]:
    return {"r1": Recorded(), "r2": Recorded()}


@pytest.fixture
def mistakes() -> list[fx.WorkerMistake]:
    return []


@pytest.fixture
def answer(asked: dict[str, Recorded], mistakes: list[fx.WorkerMistake]) -> RunningAnswer:
    return RunningAnswer(lambda request: asked[request], mistakes.append)


def test_all_of_an_answer_goes_to_who_asked(answer: RunningAnswer, asked: dict[str, Recorded]) -> None:
    answer.on_begun(fx.AnswerBegun("r1"))
    answer.on_reading(reading())
    answer.on_map(reading_map())
    answer.on_token(token(0))
    answer.on_gauges(gauges())
    answer.on_finished(finished())
    assert asked["r1"].told == [
        ("begin",),
        ("read", reading()),
        ("choose", reading_map()),
        ("write", token(0)),
        ("measure", gauges()),
        ("finish", finished()),
    ]
    assert not asked["r2"].told


@pytest.mark.parametrize("position", [0, 2])
def test_a_token_that_is_missing_or_comes_twice_is_dropped_and_told(
    position: int, answer: RunningAnswer, asked: dict[str, Recorded], mistakes: list[fx.WorkerMistake]
) -> None:
    answer.on_begun(fx.AnswerBegun("r1"))
    answer.on_token(token(0))
    answer.on_token(token(position))
    answer.on_token(token(1))
    assert asked["r1"].told == [("begin",), ("write", token(0)), ("write", token(1))]
    assert [mistake.message for mistake in mistakes] == [f"Token has position {position} where 1 comes next."]


def test_an_end_says_how_much_was_written(answer: RunningAnswer, asked: dict[str, Recorded]) -> None:
    for request in ("r1", "r2"):
        answer.on_begun(fx.AnswerBegun(request))
    answer.on_token(token(0, request="r2"))
    answer.on_failed(fx.AnswerFailed(failed("r2")))
    assert asked["r2"].told[-1] == ("fail", failed("r2"), 1)
    assert answer.take_lost() is None


def test_what_was_lost_is_known_once(answer: RunningAnswer, asked: dict[str, Recorded]) -> None:
    answer.on_begun(fx.AnswerBegun("r1"))
    answer.on_token(token(0))
    answer.on_cut_off(fx.AnswerCutOff("r1"))
    assert asked["r1"].told[-1] == ("cut_off", 1, False)
    assert answer.take_lost() == 1
    assert answer.take_lost() is None
