"""Generated titles in the real window: given while idle, dropped for what is asked, never over a person's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app.controllers import titles
from app.launch.scenario import ask
from app.shell.window import MainWindow
from app.store.preferences import PreferencesFile
from core.worker.client import worker_command
from tests.app.stage import Stage, asked, last, ready, set_value, until
from tests.core.toy import write_toy_model
from tests.processes import set_home


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(titles, "QUIET_MS", 50)
    monkeypatch.setattr(titles, "LEAST_PARAMETERS", 1)


def title(window: MainWindow) -> str:
    return window.controller.chats.open.title


async def answered(window: MainWindow, question: str) -> None:
    ask(window, question)
    await until(lambda: window.controller.link.busy)
    await ready(window)


@pytest.mark.sweep
async def test_a_chat_is_titled_after_its_answer_and_keeps_it_as_the_choice_is_kept(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    await answered(window, "write 3 about harbours")
    assert title(window) == "write 3 about harbours"
    figures = last(window).finished
    await until(lambda: title(window) == "Title of harbours")
    assert window.views.sidebar.list.row(window.controller.chats.open.id).title == "Title of harbours"
    # It is no answer and in no figures.
    assert len(window.controller.chats.open.turns) == 1
    assert last(window).finished == figures
    await answered(window, "write 3 about ropes")
    await asyncio.sleep(0.3)
    assert title(window) == "Title of harbours"
    # Taken away by a person: it does not come back.
    window.controller.chat.listing.rename(window.controller.chats.open.id, "")
    await answered(window, "write 3 about buoys")
    await asyncio.sleep(0.3)
    assert title(window) == "write 3 about harbours"
    window.controller.chat.listing.rename(window.controller.chats.open.id, "Title of harbours")
    window = await stage.open(folder=tmp_path)
    assert title(window) == "Title of harbours"

    assert window.controller.home.preferences.now.settings.writing.titles
    window.app_settings.set("writing.titles", False)
    await stage.close()
    assert not PreferencesFile(tmp_path).now.settings.writing.titles


@pytest.mark.sweep
async def test_a_persons_title_stays_typing_goes_first_and_it_can_be_switched_off(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing, chats = window.controller.chat.listing, window.controller.chats
    await answered(window, "write 3 slowly harbours")
    suggested = window.controller.titles
    await until(lambda: suggested.is_asking)  # it is under way for some seconds
    listing.rename(chats.open.id, "My ferries")
    await until(lambda: not suggested.is_asking)
    assert title(window) == "My ferries"
    window.controller.chat.start()
    await answered(window, "write 3 untitled harbours")
    await asyncio.sleep(0.3)
    assert title(window) == "write 3 untitled harbours"

    window.controller.chat.start()
    suggested = window.controller.titles
    await answered(window, "write 3 slowly harbours")
    await until(lambda: suggested.is_asking)
    window.views.composer.set_text("And")
    await until(lambda: not suggested.is_asking)
    await asyncio.sleep(0.3)
    assert title(window) == "write 3 slowly harbours"  # nor is it asked for while something is written
    window.views.composer.set_text("")
    await answered(window, "write 3 more")
    await until(lambda: suggested.is_asking)
    ask(window, "write 3 at once")
    await until(lambda: not suggested.is_asking)
    await ready(window)
    assert last(window).status == "finished"
    await until(lambda: title(window) == "Title of harbours")

    window.controller.chat.start()
    window.app_settings.set("writing.titles", False)
    await answered(window, "write 3 about harbours")
    await asyncio.sleep(0.3)
    assert title(window) == "write 3 about harbours"
    window.app_settings.set("writing.titles", True)
    monkeypatch.setattr(titles, "LEAST_PARAMETERS", 10**9)
    await answered(window, "write 3 about ropes")
    await asyncio.sleep(0.3)
    assert title(window) == "write 3 about harbours"


async def test_chats_that_are_answered_in_the_background_get_a_title_too(window: MainWindow) -> None:
    """One is left while it is answered, another answers its queue; a third one is open meanwhile."""
    chats = window.controller.chats
    ask(window, "write 40 slowly about harbours")
    left = chats.open.id
    await until(lambda: window.controller.link.busy)
    window.controller.chat.start()
    await until(lambda: chats.get(left).turns[0].answer.over)
    await until(lambda: chats.get(left).title == "Title of harbours")
    assert chats.open.id != left
    row = window.views.sidebar.list.row(left)
    assert row.title == "Title of harbours"

    # Typing has precedence; later both that wait get theirs.
    waiting = []
    for name in ("ropes", "buoys"):
        ask(window, f"write 40 about {name}")
        waiting.append(chats.open.id)
        window.controller.chat.start()
        window.views.composer.set_text("And")
        await until(lambda: chats.get(waiting[-1]).turns[0].answer.over)
        await ready(window)
        window.views.composer.set_text("")
    window.controller.chat.start()
    await answered(window, "write 3 about piers")
    await until(lambda: title(window) == "Title of piers")
    await until(lambda: [chats.get(each).title for each in waiting] == ["Title of ropes", "Title of buoys"])


async def test_over_the_real_worker_the_next_answer_reuses_what_was_read(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_home(monkeypatch, tmp_path / "home")
    write_toy_model(tmp_path / "toy")

    window = await stage.open(command=worker_command(), model=str(tmp_path / "toy"))

    await ready(window)
    suggested = window.controller.titles
    set_value(window, "sampling.max_tokens", 12)
    await asked(window, "hello")
    first = last(window).finished
    await until(lambda: suggested.is_asking)
    await until(lambda: not suggested.is_asking)
    ask(window, "and on")
    await until(lambda: window.controller.link.busy)
    await ready(window)
    second = last(window).finished
    assert second.stats.reused_tokens >= first.stats.prompt_tokens
