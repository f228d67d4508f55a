"""Whatever is heard or wanted has one rule, whatever that asks for one handler, and the docs list both."""

from __future__ import annotations

from typing import get_args

import pytest
from PySide6.QtWidgets import QApplication

from app.controllers import handlers as module
from app.session.turn import effects as fx
from app.session.turn.intents import Intent, Submit
from app.session.turn.link_state import Phase
from app.session.turn.turn import RULES
from app.shell.window import MainWindow
from core.events import Event, Heartbeat, Message, TableStatus
from core.settings import Settings
from core.worker.client import BadLine, WorkerExited, WorkerSilent
from tests.app.controllers.messages_doc import DOC, handlers, markdown
from tests.app.stage import play, ready


def test_each_input_has_a_rule() -> None:
    heard = {*get_args(Event), *get_args(Intent), BadLine, WorkerExited, WorkerSilent}
    assert set(RULES) == heard


def test_each_effect_has_a_handler() -> None:
    assert set(handlers().table) == set(get_args(fx.Effect))


def test_an_effect_without_a_handler_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgotten:
        pass

    monkeypatch.setattr(module, "get_args", lambda _: (*get_args(fx.Effect), Forgotten))
    with pytest.raises(TypeError, match="Forgotten"):
        handlers()


def test_the_docs_list_them() -> None:
    assert DOC.read_text(encoding="utf-8") == markdown(), "Run: make messages-doc"


def test_what_people_must_know_of_the_tables_is_on_the_banner(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        banner = window.views.banner
        window.controller.handle(TableStatus("warm", "f" * 64, "Fake"))
        assert banner.trouble is None
        window.controller.handle(TableStatus("failed", "f" * 64, "Fake", notes=("No room.",)))
        assert banner.trouble is not None
        assert banner.trouble.title == "No room."

    play(qapp, scene)


def test_what_is_wanted_meanwhile_is_handled_afterwards(qapp: QApplication) -> None:
    """A count that is wanted while a count is told was handled inside of it, before all that followed."""

    async def scene(window: MainWindow) -> None:
        await ready(window)
        controller, told = window.controller, list[str]()
        table = controller._handlers.table

        def nested(effect: fx.MemoryHeard) -> None:
            if effect.used_bytes == 1:
                controller.handle(Heartbeat("idle", 0.0, 2, 9))
                told.append("within the first")
            else:
                told.append("the second")

        controller.link_changed.connect(lambda link: told.append("changed"))
        table[fx.MemoryHeard] = nested
        table[fx.SilenceBroken] = lambda effect: None
        table[fx.WorkerStuck] = lambda effect: None
        controller.handle(WorkerSilent(9.0))
        told.clear()
        controller.handle(Heartbeat("idle", 0.0, 1, 9))
        assert told == ["within the first", "changed", "the second"]

    play(qapp, scene)


def test_an_effect_that_fails_keeps_no_other_one_back(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        controller = window.controller

        def fail(effect: fx.AnswerBegun) -> None:
            raise ValueError("a bug in a handler")

        sent: list[object] = []
        controller._handlers.table[fx.AnswerBegun] = fail
        controller._handlers.table[fx.Send] = sent.append
        with pytest.raises(ValueError, match="a bug in a handler"):
            controller.handle(Submit("r", (Message("user", "write 3"),), Settings()))
        assert len(sent) == 1
        assert controller.link.phase is Phase.READING
        controller._handlers.table[fx.AnswerCutOff] = lambda effect: None

    play(qapp, scene)
