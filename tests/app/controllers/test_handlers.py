"""Whatever is heard or wanted has one rule, whatever that asks for one handler, and the docs list both."""

from __future__ import annotations

from typing import get_args

import pytest
from PySide6.QtWidgets import QApplication

from app.controllers import handlers as module
from app.session.turn import effects as fx
from app.session.turn.intents import Intent
from app.session.turn.turn import RULES
from app.shell.window import MainWindow
from core.events import Event, TableStatus
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
