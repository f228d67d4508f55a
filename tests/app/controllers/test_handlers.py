"""Whatever is heard or wanted has one rule, whatever that asks for one handler, and the docs list both."""

from __future__ import annotations

from typing import get_args

import pytest

from app.controllers import handlers as module
from app.session.turn import effects as fx
from app.session.turn.intents import Intent
from app.session.turn.turn import RULES
from core.events import Event
from core.worker.client import BadLine, WorkerExited, WorkerSilent
from tests.app.controllers.messages_doc import DOC, handlers, markdown


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
