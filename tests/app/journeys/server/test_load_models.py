"""Requests to the window's server that name another installed model, over a real worker and HTTP."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import Cancel, TakeTurn, TurnTaken
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import Stage, answering, last, until
from tests.core.toy import write_toy_model
from tests.processes import set_home

SETTINGS = assign_all(Settings(), [("sampling.max_tokens", 200), ("prefill.mode", "off")])


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of two models, and one whose weights are damaged."""
    set_home(monkeypatch, tmp_path)
    models = tmp_path / "data" / "models"
    for seed, name in enumerate(("First-Toy", "Second-Toy")):
        write_toy_model(models / name, seed=seed)
    shutil.copytree(models / "First-Toy", models / "Damaged-Toy")
    config = models / "Damaged-Toy" / "config.json"
    config.write_text(config.read_text().replace('"hidden_size": 32', '"hidden_size": 48'))
    return models


def request(base: str, model: str, tokens: int = 24) -> Asked:
    return Asked(base, "the harbour", model=model, max_tokens=tokens, temperature=0, drafter="off")


def loaded(window: MainWindow) -> str:
    info = window.controller.link.info
    return info.name if info else ""


@pytest.mark.sweep
async def test_a_request_loads_its_model_in_its_turn_and_the_window_shows_it(
    stage: Stage, models: Path
) -> None:
    window = await stage.open(command=worker_command(), model=str(models / "First-Toy"))
    base = await switch_on(window, load_models=True)
    # Sent while the first model is still being loaded.
    other = await request(base, "Second-Toy").whole()
    assert (other.is_whole, loaded(window)) == (True, "Second Toy")
    assert window.controller.models.state.info == window.controller.link.info
    assert "Second Toy" in window.views.header.subtitle
    first = await request(base, "first-toy").whole()
    assert (first.is_whole, loaded(window)) == (True, "First Toy")
    assert first.text != other.text
    assert (await request(base, "gpt-5").whole()).text == first.text
    # An answer of the window is not interrupted, and the next question waits for the load.
    window.views.inspector.set_settings(SETTINGS)
    await answering(window, "Tell a long story.")
    waiting = [request(base, "Second-Toy", 200), request(base, "Second-Toy"), request(base, "First-Toy")]
    await until(lambda: len(window.controller.sharing.answers.sent) == 3)
    assert loaded(window) == "First Toy"
    await until(lambda: window.controller.link.serving and loaded(window) == "Second Toy")
    assert last(window).over
    ask(window, "And another one.")
    await until(lambda: window.controller.link.ahead > 0)
    for each in waiting:
        await each.whole()
        assert each.is_whole
    assert (waiting[1].text, waiting[2].text) == (other.text, first.text)
    # The question is answered by the model that was loaded when it was asked.
    await until(lambda: last(window).over)
    assert last(window).status == "finished"
    assert loaded(window) == "Second Toy"
    assert window.views.banner.isHidden()


async def test_a_model_that_does_not_load_ends_its_request_alone_and_the_window_says_so(
    stage: Stage, models: Path
) -> None:
    window = await stage.ready(command=worker_command(), model=str(models / "First-Toy"))
    base = await switch_on(window)
    assert (await request(base, "Second-Toy").whole()).is_whole
    assert loaded(window) == "First Toy", "a request loads no model unless that is allowed"
    base = await switch_on(window, load_models=True)
    expected = await request(base, "First-Toy").whole()
    running = request(base, "First-Toy", 200)
    await until(lambda: bool(running.text))
    damaged, behind = request(base, "Damaged-Toy"), request(base, "First-Toy")
    await damaged.whole()
    assert damaged.error == "bad_model"
    assert window.views.banner.isVisible()
    await behind.whole()
    assert behind.text == expected.text
    assert loaded(window) == "First Toy"
    # A window without a model loads the one that is named.
    window.controller.models.unload()
    await until(lambda: window.controller.link.phase is Phase.NO_MODEL)
    assert (await request(base, "gpt-5").whole()).status == 503
    assert (await request(base, "Second-Toy").whole()).is_whole
    assert loaded(window) == "Second Toy"
    await running.whole()


async def test_a_worker_that_dies_of_a_load_comes_back_with_the_previous_model(window: MainWindow) -> None:
    sharing, pid = window.controller.sharing, window.worker.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    load = asyncio.ensure_future(sharing.gate.ask(TakeTurn("client", "other"), TurnTaken))
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    failed = await asyncio.wait_for(load, 30)
    assert failed.code == "worker-failed"
    waiting = asyncio.ensure_future(sharing.gate.settled())  # a request
    await asyncio.wait_for(waiting, 60)
    assert (sharing.gate.state, window.controller.link.model) == ("ready", "starter")
    # A question goes after the turn that a request has, and is answered when that ends.
    assert isinstance(await sharing.gate.ask(TakeTurn("client", "other"), TurnTaken), TurnTaken)
    ask(window, "write 4")
    await until(lambda: window.controller.link.ahead == 1)
    sharing.post(Cancel("client"))
    await until(lambda: last(window).status == "finished")
