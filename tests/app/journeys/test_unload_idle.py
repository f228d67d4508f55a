"""Unloading when idle: the setting reaches each worker, and the window says that the model is unloaded."""

from __future__ import annotations

from app.session.strings import LOADS_AGAIN, RELEASED
from core.events import Message, ModelReleased, UnloadIdle
from tests.app.hand import Hand
from tests.app.stage import Stage, last, ready, sent, until


async def test_the_setting_reaches_each_worker_and_the_window_shows_it(stage: Stage) -> None:
    window = await stage.open()
    controller, commands = window.controller, sent(window, UnloadIdle)
    await ready(window)
    assert commands == [], "it is off by default, as in the worker"
    window.app_settings.set("memory.unload_minutes", 30)
    assert commands == [UnloadIdle(1800.0)]
    window.app_settings.set("look.zoom_pct", 110)
    controller.restart()
    await until(lambda: len(commands) == 2)
    assert commands[1] == UnloadIdle(1800.0)
    await ready(window)
    controller.handle(ModelReleased())
    assert Hand(window).reads(RELEASED)
    assert window.views.first_page.title == "Fake 1M is unloaded."
    assert LOADS_AGAIN in window.views.hint.text()
    assert controller.models.state.released
    controller.asking.submit(Message("user", "write 3"))
    await until(lambda: last(window).status == "finished")
    window.app_settings.set("memory.unload_minutes", 0)
    assert commands[2:] == [UnloadIdle(0.0)]
