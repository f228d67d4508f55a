"""Chat and local server over one worker: who waits, who goes first, who stops, and what dies with it."""

from __future__ import annotations

import os
import signal

import pytest

from app.launch.scenario import ask
from app.session.turn.intents import Load
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import answering, last, ready, until


async def served(window: MainWindow, asked: Asked) -> None:
    await until(lambda: bool(asked.text) and window.controller.link.serving, what="not served")


@pytest.mark.sweep
async def test_the_chat_and_requests_wait_for_each_other_and_a_waiting_question_can_be_taken_back(
    window: MainWindow,
) -> None:
    base = await switch_on(window)
    first = Asked(base, "write 100000 slowly")
    await served(window, first)
    second = Asked(base, "write 200 slowly")
    await until(lambda: len(window.controller.sharing.answers.sent) == 2)
    assert window.views.composer.state == "idle"
    ask(window, "write 4")
    third = Asked(base, "write 5")
    await until(
        lambda: len(window.controller.sharing.answers.sent) == 3 and window.controller.link.ahead == 2
    )
    assert window.views.hint.text() == "Waiting for 2 requests of the local server"
    assert window.views.composer.state == "busy"
    assert last(window).tokens == ()
    await first.leave()
    await until(lambda: window.controller.link.ahead == 1)
    assert window.views.hint.text() == "Waiting for 1 request of the local server"
    await second.whole()
    await until(lambda: last(window).status == "finished")
    assert not third.done or third.is_whole
    await third.whole()
    assert third.is_whole
    assert not window.controller.sharing.answers.sent
    assert [record.state for record in window.controller.sharing.requests.all] == [
        "cancelled", "finished", "finished",
    ]  # fmt: skip

    window.controller.chat.start()
    base = await switch_on(window)
    await answering(window)
    asked = Asked(base, "write 5")
    await until(lambda: len(window.controller.sharing.answers.sent) == 1)
    assert asked.raw == b""
    window.controller.asking.readiness.stop_running()
    await asked.whole()
    assert asked.is_whole
    assert last(window).status == "stopped"
    await ready(window)

    window.controller.chat.start()
    base = await switch_on(window)
    first = Asked(base, "write 100000 slowly")
    await served(window, first)
    ask(window, "write 4")
    await until(lambda: window.controller.link.ahead == 1)
    window.controller.asking.readiness.stop_running()
    await until(lambda: window.controller.link.phase is Phase.READY)
    assert window.controller.chats.open.turns == ()
    assert window.views.composer.text == "write 4"
    assert len(window.controller.sharing.answers.sent) == 1
    before = len(first.text)
    await until(lambda: len(first.text) > before)
    await first.leave()
    await until(lambda: not window.controller.link.serving)


async def test_another_model_a_death_and_the_end_of_the_window_end_what_is_asked(window: MainWindow) -> None:
    base = await switch_on(window)
    asked, waiting = Asked(base, "write 100000 slowly"), Asked(base, "write 3")
    await served(window, asked)
    await until(lambda: len(window.controller.sharing.answers.sent) == 2)
    window.controller.handle(Load("other"))
    await asked.whole()
    await waiting.whole()
    assert asked.error == "model_changed"
    assert (waiting.status, waiting.error) == (503, "model_changed")
    await ready(window)
    assert (await Asked(base, "write 3").whole()).is_whole
    assert window.views.banner.isHidden()

    asked, waiting = Asked(base, "write 100000 slowly"), Asked(base, "write 7")
    await served(window, asked)
    await until(lambda: len(window.controller.sharing.answers.sent) == 2)
    pid = window.worker.pid
    os.kill(pid, signal.SIGKILL)
    await asked.whole()
    assert asked.error == "worker_failed"
    await waiting.whole()
    assert waiting.is_whole
    assert window.worker.pid != pid
    await ready(window)
    ask(window, "die 4")
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert last(window).status == "cut_off"
    assert (await Asked(base, "write 3").whole()).is_whole

    asked, waiting = Asked(base, "write 100000 slowly"), Asked(base, "write 3")
    await served(window, asked)
    await until(lambda: len(window.controller.sharing.answers.sent) == 2)
    await window.shut_down()
    assert (await asked.whole()).error == (await waiting.whole()).error == "server_ends"


async def test_a_client_asks_teaches_the_tables_where_wanted_and_ends_with_the_server(
    window: MainWindow,
) -> None:
    base = await switch_on(window)
    requests = window.controller.sharing.requests

    async def learned(**fields: object) -> bool:
        await Asked(base, "write 3", **fields).whole()
        answered = [each.id for each in requests.all if requests.events(each.id)]
        finished = requests.events(answered[-1])[-1]
        return bool(finished.effective.settings.tables.learn)

    assert not await learned()
    assert not await learned(settings={"tables.learn": True})
    window.app_settings.set("server.learn", True)
    assert await learned()
    assert not await learned(settings={"tables.learn": False})

    asked = await Asked(base, "write 12").whole()
    assert asked.status == 200
    assert asked.is_whole
    assert asked.text.startswith("ECHO 1:")
    assert window.controller.link.phase is Phase.READY
    assert window.views.banner.isHidden()
    record = requests.all[-1]
    assert (record.state, record.client, record.tokens) == ("finished", "editor/1.2", 13)
    assert window.controller.chats.open.turns == ()
    window.app_settings.set("server.on", False)
    await until(lambda: window.controller.server.state.status == "off")
    with pytest.raises(ConnectionRefusedError):
        await Asked(base, "write 3").whole()
