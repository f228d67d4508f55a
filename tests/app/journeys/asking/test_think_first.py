"""“Think first” beside the composer, over the real worker: turned, obeyed, remembered, hidden."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.launch.scenario import ask
from app.session.turn.intents import Load
from app.shell.window import MainWindow
from core.events import Finished
from core.worker.client import worker_command
from tests.app.stage import Stage, answer_view, last, ready, set_value, until
from tests.core.thinking_toy import SWITCHED, write_thinking_toy
from tests.core.toy import TEMPLATE
from tests.processes import set_home


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`switched` knows the switch, `always` thinks and has none."""
    set_home(monkeypatch, tmp_path / "home")
    write_thinking_toy(tmp_path / "switched", SWITCHED)
    write_thinking_toy(tmp_path / "always", TEMPLATE)
    return tmp_path


async def answered(window: MainWindow, question: str) -> Finished:
    ask(window, question)
    await until(lambda: window.controller.link.busy)
    await ready(window)
    finished = last(window).finished
    assert finished
    return finished


async def test_it_is_turned_in_a_chat_obeyed_remembered_and_hidden_without_the_switch(
    stage: Stage, models: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    window = await stage.ready(command=worker_command(), model=str(models / "switched"), folder=folder)
    inspector, think = window.views.inspector, window.views.composer.think
    set_value(window, "sampling.max_tokens", 3)
    assert think.isVisible()
    assert think.switch.isChecked()
    assert not inspector.field("chat.thinking").isHidden()
    thinking = await answered(window, "hello")
    assert thinking.effective.settings.chat.thinking == "auto"

    window.controller.chat.start()
    set_value(window, "sampling.max_tokens", 3)
    # Its words are a part of it.
    QTest.mouseClick(think, Qt.MouseButton.LeftButton, pos=QPoint(think.width() - 4, think.height() // 2))
    assert not think.switch.isChecked()
    assert inspector.settings.chat.thinking == "off"
    at_once = await answered(window, "hello")
    assert at_once.effective.settings.chat.thinking == "off"
    # The template wrote an empty thought for the model.
    assert at_once.stats.prompt_tokens == thinking.stats.prompt_tokens + 2

    window.controller.chat.start()
    assert think.switch.isChecked()
    think.switch.setFocus()
    QTest.keyClick(think.switch, Qt.Key.Key_Space)
    assert inspector.settings.chat.thinking == "off"
    inspector.field("chat.thinking").edited.emit("chat.thinking", "on")
    assert think.switch.isChecked()
    window.controller.chat.select(window.controller.chats.listed()[0].id)
    assert not think.switch.isChecked()
    window = await stage.open(command=worker_command(), model=str(models / "switched"), folder=folder)
    assert window.views.inspector.settings.chat.thinking == "off"
    await ready(window)
    assert window.views.composer.think.isVisible()
    assert not window.views.composer.think.switch.isChecked()
    # It is hidden for a model without the switch, which says so.
    think, inspector = window.views.composer.think, window.views.inspector
    set_value(window, "sampling.max_tokens", 3)
    window.controller.handle(Load(str(models / "always")))
    await ready(window)
    assert think.isHidden()
    assert inspector.field("chat.thinking").isHidden()
    finished = await answered(window, "hello")
    assert "chat.thinking" in [change.setting for change in finished.effective.changes]
    item = answer_view(window)
    assert any(note.startswith("Think first On instead of Off") for note in item.footer.notes)
