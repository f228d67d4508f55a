"""The race in the whole window: recorded by a worker, compared, stopped, and the chat after it."""

from __future__ import annotations

import os
import signal

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.features.race import strings
from app.features.race.race import Stage
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import Attachment, Message
from core.settings import assign_all
from core.worker.client import worker_command
from tests.app.stage import click, last, play, press, ready, until

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def opened(window: MainWindow, question: str = "Please write 40 words") -> None:
    await ready(window)
    await press(window, Qt.Key.Key_R, CTRL | SHIFT)
    assert window.views.race.isVisible()
    window.views.race.prompt.question.set_value(question)


async def run(window: MainWindow, timeout_s: float = 10.0) -> None:
    await until(lambda: window.controller.racing.race.stage is Stage.RUN, timeout_s, "never run")


async def test_a_race_is_recorded_and_compared(window: MainWindow) -> None:
    await opened(window)
    page, racing = window.views.race, window.controller.racing
    assert not window.columns.arrangement.inspector_px
    await click(page.start_button)
    assert racing.race.stage is Stage.PLAIN
    assert page.stop_button.isVisible()
    assert not page.start_button.isVisible()
    await run(window)
    assert racing.race.plain.ids == racing.race.drafted.ids
    assert "All 40 tokens are identical." in page.verdict.text()
    whole = "".join(token.text for token in racing.race.drafted.tokens)
    for side in (page.plain, page.drafted):
        assert side.transcript.answer_text("race") == whole
        assert side.status.text() == strings.FINISHED
        answer = side.transcript.answer("race")
        assert answer
        assert answer.footer.stats.text.startswith("50.0 tok/s")
    assert page.headline.text() == "1.00× the plain speed"
    await click(page.done_button)
    assert window.views.composer.isVisible()
    assert window.columns.arrangement.inspector_px


async def test_a_seed_is_named_only_where_answers_are_drawn(window: MainWindow) -> None:
    await opened(window)
    seed, inspector = window.views.race.prompt.seed, window.views.inspector
    assert not seed.isVisible()
    await click(window.views.race.done_button)
    inspector.change_settings(assign_all(inspector.settings, [("sampling.temperature", 0.5)]))
    ask(window, "write 3")
    await ready(window)
    window.controller.racing.show()
    assert seed.isVisible()
    assert seed.text() == "Seed 42"


async def test_the_chat_does_not_notice(window: MainWindow) -> None:
    await ready(window)
    ask(window, "Please write 12 words")
    await ready(window)
    before = window.controller.chats.open
    await press(window, Qt.Key.Key_R, CTRL | SHIFT)
    page = window.views.race
    assert page.prompt.message.content == "Please write 12 words"
    await click(page.start_button)
    await run(window)
    assert window.controller.chats.open == before
    assert [m.content for m in window.controller.racing.race.messages] == ["Please write 12 words"]
    assert window.views.composer.text == ""
    await click(page.done_button)
    ask(window, "Please write 6 words")
    await ready(window)
    # The fake counts what it was asked with: question, answer, question.
    assert last(window).text.startswith("ECHO 3:")


async def test_a_follow_up_is_raced_with_what_went_before_it_and_its_document(window: MainWindow) -> None:
    await ready(window)
    ask(window, "Please write 6 words")
    await ready(window)
    document = Attachment("ledger.txt", "one two three")
    window.controller.asking.submit(Message("user", "Please write 9 words", (document,)))
    await ready(window)
    window.controller.racing.show()
    assert window.views.race.prompt.message == Message("user", "Please write 9 words", (document,))
    window.controller.racing.start()
    await run(window)
    messages = window.controller.racing.race.messages
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert messages[-1].attachments == (document,)


async def test_stop_ends_it_and_leaves_the_chat_usable(window: MainWindow) -> None:
    await opened(window, "Please write 400 words slowly")
    page = window.views.race
    await click(page.start_button)
    await until(lambda: len(window.controller.racing.race.plain.tokens) > 3)
    assert window.views.composer.state == "later"
    await click(page.stop_button)
    await ready(window)
    assert window.controller.racing.race.stage is Stage.IDLE
    assert page.start_button.isVisible()
    assert page.start_button.isEnabled()
    window.controller.racing.close()
    ask(window, "Please write 6 words")
    await ready(window)
    assert last(window).status == "finished"


async def test_leaving_it_stops_it(window: MainWindow) -> None:
    await opened(window, "Please write 400 words slowly")
    await click(window.views.race.start_button)
    await until(lambda: len(window.controller.racing.race.plain.tokens) > 3)
    window.controller.chat.start()
    assert not window.views.race.isVisible()
    await ready(window)
    assert window.controller.racing.race.stage is Stage.IDLE


async def test_what_goes_wrong_is_said(window: MainWindow) -> None:
    await opened(window, "Please refuse this")
    page = window.views.race
    await click(page.start_button)
    await until(lambda: bool(window.controller.racing.race.trouble))
    assert "808 more than" in page.verdict.text()
    page.prompt.question.set_value("Please write 400 words slowly")
    await click(page.start_button)
    await until(lambda: len(window.controller.racing.race.plain.tokens) > 3)
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert page.verdict.text() == strings.WORKER_GONE
    assert not page.start_button.isEnabled()
    window.controller.restart()
    await ready(window)
    assert page.start_button.isEnabled()


@pytest.mark.sweep
def test_a_real_race(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window, 120)
        values = [("sampling.max_tokens", 32), ("gate.mode", "always")]
        window.views.inspector.set_settings(assign_all(window.views.inspector.settings, values))
        window.controller.racing.show()
        page, racing = window.views.race, window.controller.racing
        page.prompt.drafter.set_value("ngram-simple")
        racing.start()
        await run(window, 120)
        race = racing.race
        assert race.plain.finished
        assert race.drafted.finished
        assert race.plain.finished.effective.drafter == "off"
        assert race.drafted.finished.effective.drafter == "ngram-simple"
        assert {token.origin for token in race.plain.tokens} == {"normal"}
        assert race.drafted.finished.stats.accepted > 0
        assert race.plain.ids == race.drafted.ids
        # Neither profits from the other: both read all of the prompt.
        for side in (race.plain, race.drafted):
            assert side.finished
            assert side.finished.stats.reused_tokens == 0
        whole = "".join(token.text for token in race.drafted.tokens)
        assert page.drafted.transcript.answer_text("race") == whole

    play(qapp, scene, command=worker_command())
