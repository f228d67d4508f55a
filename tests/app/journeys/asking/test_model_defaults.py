"""The sampling that a model asks for, over the real worker: taken, shown, chosen otherwise, switched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget

from app.controls.text_label import TextLabel
from app.session.chats.presets import Override
from app.session.turn.intents import Load
from app.shell.window import MainWindow
from core.settings import Settings, read
from core.worker.client import worker_command
from tests.app.stage import Stage, asked, click, last, ready, set_value, until
from tests.core.toy import write_toy_model
from tests.processes import set_home

TEMPERATURE, TOP_P, TOP_K = "sampling.temperature", "sampling.top_p", "sampling.top_k"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`warm` and `cool` ask for sampling of their own, `odd` in a way that is no use, `plain` for none."""
    set_home(monkeypatch, tmp_path / "home")
    wanted: dict[str, dict[str, object]] = {
        "warm": {"temperature": 0.6, "top_p": 0.95},
        "cool": {"temperature": 5, "top_k": 20},
    }
    wanted["odd"] = {"temperature": "hot", "top_p": 0.9}
    for name, said in {**wanted, "plain": None}.items():
        write_toy_model(tmp_path / name)
        if said:
            (tmp_path / name / "generation_config.json").write_text(json.dumps(said))
    return tmp_path


def sampling(window: MainWindow) -> tuple[float, float, int]:
    used = window.views.inspector.settings.sampling
    return used.temperature, used.top_p, used.top_k


async def switched(window: MainWindow, folder: Path) -> None:
    window.controller.handle(Load(str(folder)))
    await ready(window)
    assert window.controller.link.info.path == str(folder)


def note(window: MainWindow, key: str) -> str:
    return window.views.inspector.field(key).note


async def test_what_the_model_asks_for_is_used_and_said_until_a_person_chooses(
    stage: Stage, models: Path
) -> None:
    window = await stage.ready(command=worker_command(), model=str(models / "warm"))
    inspector, chats = window.views.inspector, window.controller.chats
    assert sampling(window) == (0.6, 0.95, 0)
    assert chats.open.overrides == ()
    assert not inspector.section("basics").is_own
    assert note(window, TEMPERATURE) == "Model default."
    assert note(window, TOP_K) == ""

    set_value(window, "sampling.max_tokens", 4)
    await asked(window, "hello")
    finished = last(window).finished
    assert finished.effective.settings.sampling.temperature == 0.6
    assert finished.effective.settings.sampling.top_p == 0.95

    # Chosen by hand: it stays, also as what another model would give.
    inspector.field(TEMPERATURE).edited.emit(TEMPERATURE, 0.9)
    inspector.field(TEMPERATURE).edited.emit(TEMPERATURE, 0.6)
    assert note(window, TEMPERATURE) == "Set for this chat. Model default: 0.6."
    await switched(window, models / "cool")
    assert sampling(window) == (0.6, 1.0, 20)
    assert note(window, TEMPERATURE) == "Set for this chat. Model default: 2."

    section, foot = inspector.open_section("basics"), inspector.own_settings("basics")
    await click(foot.reset_button)
    assert sampling(window) == (2.0, 1.0, 20)
    assert note(window, TEMPERATURE) == "Nearest allowed value to the model’s default of 5."
    assert note(window, TOP_K) == "Model default."
    assert not section.is_own
    assert foot.isHidden()
    await switched(window, models / "plain")
    assert sampling(window) == (0.0, 1.0, 0)
    assert note(window, TEMPERATURE) == ""
    # A file that is no use is said.
    await switched(window, models / "odd")
    assert sampling(window) == (0.0, 0.9, 0)
    await until(lambda: "gives no number for temperature" in _text(inspector.section("model")))
    assert read(inspector.defaults, TEMPERATURE) == read(Settings(), TEMPERATURE)


async def test_a_default_for_all_chats_and_a_presets_value_go_before_the_models(
    stage: Stage, models: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    window = await stage.ready(command=worker_command(), model=str(models / "plain"), folder=folder)
    inspector, controller = window.views.inspector, window.controller
    assert sampling(window) == (0.0, 1.0, 0)
    # Greedy is what there is anyway; it was chosen all the same.
    controller.chat.settings.presets.take("Documents")
    assert controller.chats.open.overrides[0] == Override(TEMPERATURE, 0.0)
    await switched(window, models / "warm")
    assert sampling(window) == (0.0, 0.95, 0)
    assert inspector.presets.popup.value == "Documents"
    controller.chat.settings.presets.take("")
    assert sampling(window) == (0.6, 0.95, 0)

    inspector.field(TEMPERATURE).edited.emit(TEMPERATURE, 0.0)
    inspector.open_section("basics")
    await click(inspector.own_settings("basics").default_button)
    kept = controller.home.preferences.now.defaults
    assert kept == (Override(TEMPERATURE, 0.0),)  # and not the model's top-p
    assert note(window, TEMPERATURE) == "Your default. Model default: 0.6."
    window = await stage.ready(command=worker_command(), model=str(models / "warm"), folder=folder)
    assert sampling(window) == (0.0, 0.95, 0)
    window.controller.chat.settings.reset_defaults()
    assert window.controller.home.preferences.now.defaults == ()
    assert sampling(window) == (0.6, 0.95, 0)


def _text(section: QWidget) -> str:
    return "\n".join(label.text() for label in section.findChildren(TextLabel))
