"""Every command about an answer acts on the chat in view, or says why it cannot, whoever is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.chat.intents import (
    ContinueAnswer,
    ContinueFrom,
    Intent,
    ReadEverything,
    Regenerate,
    SendQueued,
    ShowVersion,
    StopAnswer,
)
from app.session.chats.conversation import QueuedMessage
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import Message
from tests.app.hand import Hand
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import Stage, answer_view, answering, asked, click, last, press, ready, until
from tests.app.stage import stop as stopped

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
READING, WRITING = "read 100000 slowly", "write 100000 slowly"
Act = Callable[[MainWindow], Awaitable[None]]


def key(code: Qt.Key, held: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> Act:
    async def act(window: MainWindow) -> None:
        window.views.composer.edit.setFocus()
        await press(window, code, held)

    return act


def menu(name: str) -> Act:
    async def act(window: MainWindow) -> None:
        window.menu_actions[name].trigger()

    return act


def intent(make: Callable[[str], Intent]) -> Act:
    """What a button emits, for the last turn of the chat in view."""

    async def act(window: MainWindow) -> None:
        window.views.transcript.intent.emit(make(window.controller.chats.open.turns[-1].id))

    return act


STOPS: dict[str, Act] = {
    "Esc": key(Qt.Key.Key_Escape),
    "Cmd-.": key(Qt.Key.Key_Period, CTRL),
    "Stop Generating": menu("stop"),
    "stop button": intent(lambda turn_id: StopAnswer()),
}
OTHERS: dict[str, Act] = {
    "Cmd-R": key(Qt.Key.Key_R, CTRL),
    "Regenerate button": intent(Regenerate),
    "Continue button": intent(lambda turn_id: ContinueAnswer()),
    "Continue from Here": intent(lambda turn_id: ContinueFrom(turn_id, 4)),
    "Read Everything": intent(ReadEverything),
    "Up": key(Qt.Key.Key_Up),
    "Edit Answer": key(Qt.Key.Key_E, CTRL | SHIFT),
    "Copy Answer": key(Qt.Key.Key_C, CTRL | SHIFT),
    "Branch": menu("branch"),
    "versions": intent(lambda turn_id: ShowVersion(turn_id, 0)),
    "Send Now": intent(lambda turn_id: SendQueued()),
}
# These need no worker, so they work while another chat is answered.
FREE = {"Up", "Edit Answer", "Copy Answer", "Branch", "versions"}


def state(window: MainWindow) -> object:
    """What a command about the chat in view can change."""
    controller = window.controller
    chat, edited = controller.chats.open, window.views.transcript.edited
    turns = tuple((turn.id, turn.place, turn.answer.status) for turn in chat.turns)
    editor = edited is not None and edited.editor is not None
    in_composer = controller.asking.readiness.edited
    return chat.id, turns, chat.queued, in_composer, editor, QGuiApplication.clipboard().text()


async def two_versions(window: MainWindow) -> str:
    """A chat with an answer of two versions, which can be continued, and a held message. Its id."""
    await answering(window)
    await stopped(window)
    window.controller.asking.regenerate()
    await until(lambda: len(last(window).tokens) > 4)
    await stopped(window)
    chats = window.controller.chats
    chats.keep(chats.open.with_queued((QueuedMessage(Message("user", "write 2")),)))
    return chats.open.id


async def back(window: MainWindow, chat_id: str) -> None:
    """The chat in view as it was, without an edit or a notice."""
    controller, edited = window.controller, window.views.transcript.edited
    if edited is not None and edited.editor is not None:
        edited.editor.cancel()
    controller.asking.cancel_edit()
    controller.chat.select(chat_id)
    turn = controller.chats.open.turns[-1]
    if len(turn.versions) > 1 and not turn.place:
        controller.asking.edits.show_version(turn.id, 1)
    window.views.notice_bar.clear()
    window.views.composer.clear()
    QGuiApplication.clipboard().setText("copied before")


@pytest.mark.sweep
@pytest.mark.parametrize("question", [READING, WRITING])
async def test_while_another_chat_is_answered(window: MainWindow, question: str) -> None:
    hand, controller = Hand(window), window.controller
    await ready(window)
    here = await two_versions(window)
    controller.chat.start()
    await hand.send(question)
    other = controller.chats.open.id
    phase = Phase.WRITING if question == WRITING else Phase.READING
    await until(lambda: controller.link.phase is phase)
    running, turns = controller.link.request, [each.id for each in controller.chats.open.turns]
    for name, act in {**STOPS, **OTHERS}.items():
        await back(window, here)
        before = state(window)
        await act(window)
        changed, says = state(window) != before, hand.notice
        assert changed == (name in FREE), name
        assert changed or question in says, name  # it names the chat that is being answered
        assert (controller.link.request, controller.link.phase) == (running, phase), name
        assert [each.id for each in controller.chats.get(other).turns] == turns, name
    # What is said ends with its cause, and with the chat; the button stops the other chat.
    await back(window, here)
    await press(window, Qt.Key.Key_R, CTRL)
    controller.chat.select(other)
    assert hand.notice == ""
    controller.chat.select(here)
    await press(window, Qt.Key.Key_Escape)
    await hand.click("Stop Generating")
    await ready(window)
    assert hand.notice == ""
    assert controller.chats.get(other).turns[-1:] == () or controller.chats.get(other).turns[-1].answer.over


async def try_others(window: MainWindow, here: str, phase: Phase) -> None:
    """Each command of `OTHERS` while the chat in view is being answered."""
    hand, controller = Hand(window), window.controller
    for name, act in OTHERS.items():
        await back(window, here)
        before, running = state(window), controller.link.request
        await act(window)
        if name == "Read Everything":  # stops this answer, and asks again
            assert controller.link.phase is Phase.STOPPING
            await until(lambda old=running: controller.link.request not in ("", old))
            await until(lambda: controller.link.phase is phase)
            continue
        assert state(window) != before or hand.notice, name
        assert (controller.link.request, controller.link.phase) == (running, phase), name
    await back(window, here)


@pytest.mark.sweep
@pytest.mark.parametrize("question", [READING, WRITING])
async def test_while_this_chat_is_answered(window: MainWindow, question: str) -> None:
    hand, controller = Hand(window), window.controller
    await ready(window)
    here = await two_versions(window)
    phase = Phase.WRITING if question == WRITING else Phase.READING
    for name, stops in STOPS.items():
        window.views.composer.clear()
        await hand.send(question)
        await until(lambda: controller.link.phase is phase)
        if name == "Esc":
            await try_others(window, here, phase)
        await stops(window)
        assert controller.link.phase in (Phase.STOPPING, Phase.READY), name
        await ready(window)


async def test_while_a_client_of_the_server_or_nobody_is_answered(stage: Stage) -> None:
    window = await stage.ready()
    hand, controller = Hand(window), window.controller
    base = await switch_on(window)
    here = await two_versions(window)
    await back(window, here)
    for stops in STOPS.values():  # nothing of this window runs
        before = state(window)
        await stops(window)
        assert (state(window), controller.link.phase, hand.notice) == (before, Phase.READY, "")
    client = Asked(base, WRITING)
    await until(lambda: bool(client.text))
    for stops in STOPS.values():
        await stops(window)
    assert controller.link.serving
    # A question waits for the client, and can be stopped while it waits.
    await press(window, Qt.Key.Key_R, CTRL)
    await until(lambda: controller.link.ahead == 1)
    await press(window, Qt.Key.Key_Escape)
    await until(lambda: not controller.link.busy)
    assert controller.link.serving
    assert not client.error
    assert [len(turn.versions) for turn in controller.chats.open.turns] == [2]
    await client.leave()
    await until(lambda: not controller.link.serving)


async def test_while_a_race_is_recorded(window: MainWindow) -> None:
    controller, actions = window.controller, window.menu_actions
    await ready(window)
    await two_versions(window)
    await press(window, Qt.Key.Key_R, CTRL | SHIFT)
    chat = controller.chats.open
    for name in ("regenerate", "continue", "edit_last", "edit_answer", "copy_answer", "branch", "find"):
        assert not actions[name].isEnabled(), name  # the chat is not in view
    window.race_page.prompt.question.set_value(WRITING)
    await click(window.race_page.start_button)
    await until(lambda: controller.link.phase is Phase.WRITING)
    for name in ("stop button", *(OTHERS.keys() - FREE)):
        await {**STOPS, **OTHERS}[name](window)
    assert controller.racing.recording
    await press(window, Qt.Key.Key_Period, CTRL)
    await ready(window)
    assert not controller.racing.recording
    assert controller.chats.open == chat
    await press(window, Qt.Key.Key_Escape)
    assert actions["regenerate"].isEnabled()


@pytest.mark.parametrize("in_project", [False, True])
async def test_another_chat_is_stopped_from_the_sidebar(window: MainWindow, in_project: bool) -> None:
    controller, sidebar = window.controller, window.views.sidebar
    await answering(window)
    other = controller.chats.open.id
    row = other
    if in_project:
        row = controller.chats.projects.add("Tides").id
        controller.chat.listing.move(other, row)
        sidebar.list.project_folded.emit(row, True)
    controller.chat.start()
    assert controller.link.busy
    menu = sidebar.menu_for(row)
    (stop,) = (each for each in menu.actions() if each.text() == "Stop Generating")
    stop.trigger()
    await ready(window)
    assert controller.chats.get(other).turns[-1].answer.status == "stopped"
    assert "Stop Generating" not in [each.text() for each in sidebar.menu_for(row).actions()]


async def test_regenerate_says_why_while_no_model_is_ready(stage: Stage) -> None:
    window = await stage.ready()
    hand = Hand(window)
    await asked(window, "write 3")
    view = answer_view(window)
    window.controller.restart()
    assert window.controller.link.phase is Phase.STARTING
    await press(window, Qt.Key.Key_R, CTRL)
    assert "starting" in hand.notice
    await click(view.footer.buttons["redo"])
    assert len(window.controller.chats.open.turns[-1].versions) == 1
    await ready(window)
    assert hand.notice == ""
