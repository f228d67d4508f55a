"""Stopping a request over the real worker, in every phase and at prompts around the context's length."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.chat.intents import StopAnswer
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import Attachment, Cancel, Message, PrefillProgress, Token
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.hand import Hand
from tests.app.stage import Stage, ready, sent, until
from tests.core.toy import write_toy_model

CONTEXT_TOKENS = 1024
# The toy's tokens are characters; below, at and above the context.
DOCUMENTS = (0, 500, 880, 940, 1024, 1700, 6_000)
# Which event of a request precedes its stop: none yet, scoring, reading, the first token, later ones.
MOMENTS = ("sent", "progress", "reading", "first token", "writing")
AFTER = ("nothing", "edit", "another chat", "ask in another chat")
SETTINGS = assign_all(
    Settings(),
    [
        ("sampling.max_tokens", 300),
        ("prefill.threshold_tokens", 64),
        ("prefill.passages", "fixed"),
        ("prefill.chunk_tokens", 32),
        ("drafting.drafter", "off"),
    ],
)
WORDS = "The zebra of valley seven sleeps under a red tree, and the walrus at noon. "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("models") / "short-toy"
    write_toy_model(path, max_position_embeddings=CONTEXT_TOKENS)
    return path


def heard(window: MainWindow) -> list[object]:
    """The events of the worker from now on."""
    found: list[object] = []
    hear = window.worker.hear

    def listen(event: object) -> None:
        found.append(event)
        hear(event)

    window.worker.hear = listen  # type: ignore[assignment]
    return found


def is_at(moment: str, events: list[object]) -> bool:
    progress = [each for each in events if isinstance(each, PrefillProgress)]
    tokens = sum(isinstance(each, Token) for each in events)
    return {
        "sent": True,
        "progress": bool(progress),
        "reading": any(each.phase == "reading" for each in progress),
        "first token": tokens > 0,
        "writing": tokens > 5,
    }[moment]


@pytest.mark.sweep
async def test_any_request_is_stopped_in_any_phase_and_the_chat_goes_on(stage: Stage, folder: Path) -> None:
    window = await stage.ready(command=worker_command(), model=str(folder))
    hand, controller = Hand(window), window.controller
    events, commands = heard(window), sent(window, Cancel)
    draw = random.Random(20)
    cases = [(moment, size) for moment in MOMENTS for size in DOCUMENTS]
    draw.shuffle(cases)
    for moment, characters in [("progress", DOCUMENTS[-1]), ("reading", DOCUMENTS[-1]), *cases[:5]]:
        after, case = draw.choice(AFTER), f"{moment}, {characters}"
        controller.chat.start()
        chat_id = controller.chats.open.id
        window.views.inspector.change_settings(SETTINGS)
        attached = (Attachment("a.txt", (WORDS * 600)[:characters]),) if characters else ()
        del events[:], commands[:]
        controller.asking.submit(Message("user", "Where sleeps the walrus?", attached))
        await until(lambda at=moment: is_at(at, events) or not controller.link.busy, what=case)
        window.views.transcript.intent.emit(StopAnswer())
        if after == "edit":
            controller.asking.edit()
        elif after != "nothing":
            controller.chat.start()
        if after == "ask in another chat":
            await hand.send("Hello")
        await until(lambda: not controller.link.busy, what=case)
        if after == "ask in another chat":
            await until(lambda: controller.link.busy or bool(hand.questions), what=case)
            controller.asking.stop()
            await ready(window)
        assert controller.link.phase is Phase.READY, case
        banner = window.views.banner.trouble
        assert banner is None, (case, banner)
        controller.chat.select(chat_id)
        controller.asking.cancel_edit()
        assert all(turn.answer.status in ("stopped", "finished") for turn in controller.chats.open.turns), (
            case
        )
        # The chat goes on.
        window.views.composer.clear()
        controller.asking.submit(Message("user", "Hello"))
        await until(lambda: is_at("first token", events[-3:]) or not controller.link.busy, what=case)
        controller.asking.stop()
        await ready(window)
        assert window.views.banner.trouble is None, (case, window.views.banner.trouble)
        assert controller.chats.open.turns[-1].answer.tokens, case
    # Closed while one is read.
    controller.chat.start()
    controller.asking.submit(Message("user", "Where?", (Attachment("a.txt", WORDS * 80),)))
    await until(lambda: controller.link.busy)


async def test_a_failed_chat_is_told_in_that_chat_alone(window: MainWindow) -> None:
    hand, controller, banner = Hand(window), window.controller, window.views.banner
    await ready(window)
    await hand.send("break 4")
    failed = controller.chats.open.id
    await until(lambda: banner.trouble is not None)
    controller.chat.start()
    assert banner.isHidden()
    await hand.ask("write 2")  # ends what lasts until a question, in this chat
    other = controller.chats.open.id
    assert banner.isHidden()
    controller.chat.select(failed)
    assert "memory" in banner.trouble.title
    assert banner.smaller_button.isVisible()  # of this chat's context
    # One that fails while another chat is in view is told by a notice, and by the banner in its chat.
    await hand.ask("write 2")
    assert banner.isHidden()
    await hand.send("break 300 slowly")
    controller.chat.select(other)
    await until(lambda: "break 4" in hand.notice and "memory" in hand.notice)
    assert banner.isHidden()
    controller.chat.select(failed)
    assert banner.isVisible()
    await hand.press(Qt.Key.Key_Escape)


async def test_a_file_that_cannot_be_attached_is_told_in_its_chat(window: MainWindow) -> None:
    await ready(window)
    await Hand(window).ask("write 2")
    chat_id = window.controller.chats.open.id
    window.views.composer.say_images_left(1)
    assert window.views.banner.isVisible()
    window.controller.chat.start()
    assert window.views.banner.isHidden()
    window.controller.chat.select(chat_id)
    assert window.views.banner.isVisible()
