"""Whatever is heard or wanted has one rule, whatever that asks for one handler, and the docs list both."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest

from app.session.chats.conversation import Answer, Conversation
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
from tests.app.session.words import KILLED, finished, gauges, reading, reading_map, token
from tests.app.stage import ready, until

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


async def asked(window: MainWindow, *, race: bool = False) -> str:
    """Ask, in the open chat or in a race; the test is the worker then. Returns the request's id."""
    await ready(window)
    window.worker.send = lambda command, after=None: None  # type: ignore[method-assign]
    if race:
        window.controller.racing.show()
        window.controller.racing.start()
    else:
        window.controller.asking.submit(Message("user", "write 3"))
    return window.controller.link.request


@pytest.mark.parametrize("race", [False, True])
async def test_all_of_an_answer_goes_to_who_asked(window: MainWindow, race: bool) -> None:
    request = await asked(window, race=race)
    controller = window.controller
    for event in (reading(request), reading_map(request), token(0, request), gauges(request)):
        controller.handle(event)
    controller.handle(finished(request, tokens=1))
    recorded = controller.racing.race.plain
    chats = [turn.answer for turn in controller.chats.open.turns]
    answers = [Answer(tuple(recorded.tokens), "finished", recorded.finished)] if race else chats
    assert [(each.tokens, each.status) for each in answers] == [((token(0, request),), "finished")]
    assert not (race and chats)


@pytest.mark.parametrize("race", [False, True])
@pytest.mark.parametrize("position", [0, 2])
async def test_a_token_that_is_missing_or_comes_twice_is_dropped_and_told(
    window: MainWindow, caplog: pytest.LogCaptureFixture, position: int, race: bool
) -> None:
    request = await asked(window, race=race)
    controller = window.controller
    for each in (0, position, 1):
        controller.handle(token(each, request))
    said = [record.getMessage() for record in caplog.records if "has position" in record.getMessage()]
    expected = f"Token has position {position} where 1 comes next."
    assert [message.endswith(expected) for message in said] == [True]
    tokens = controller.racing.race.plain.tokens
    controller.handle(finished(request, tokens=2))
    tokens = tokens if race else controller.chats.open.turns[-1].answer.tokens
    assert [each.position for each in tokens] == [0, 1]


@pytest.mark.parametrize("race", [False, True])
async def test_a_death_says_once_how_much_was_written(window: MainWindow, race: bool) -> None:
    request = await asked(window, race=race)
    controller, banner = window.controller, window.views.banner
    controller.handle(token(0, request))
    controller.handle(token(1, request))
    controller.handle(KILLED)
    assert "2 tokens written so far" in banner.trouble.text
    controller.restart()
    controller.handle(KILLED)
    assert banner.trouble.text.endswith("The chats are kept.")


async def test_an_answer_that_a_restart_ended_is_not_lost_by_the_next_worker(window: MainWindow) -> None:
    request = await asked(window)
    window.controller.handle(token(0, request))
    window.controller.restart()
    window.controller.handle(KILLED)
    assert window.views.banner.trouble.text.endswith("The chats are kept.")


async def test_gauges_save_nothing_and_the_next_tokens_save_the_context(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = await asked(window)
    controller, saved = window.controller, list[Conversation]()
    monkeypatch.setattr(controller.home.library, "save", saved.append)
    controller.handle(token(0, request))
    await until(lambda: len(saved) == 1)
    controller.handle(gauges(request, 42))
    await asyncio.sleep(0.1)
    assert len(saved) == 1
    controller.handle(token(1, request))
    await until(lambda: len(saved) == 2)
    assert saved[-1].context_used_tokens == 42
