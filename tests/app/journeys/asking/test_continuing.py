"""Going on with an answer that was stopped: in the same answer, with figures of all of it, and kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.chat.answer_footer import AnswerFooter
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.stage import click, last, play, press, ready, shown, until


def footer(window: MainWindow) -> AnswerFooter:
    """Of the last answer."""
    answer = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert answer
    return answer.footer


async def stopped(window: MainWindow) -> None:
    """An answer that was stopped in the middle."""
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 4)
    assert footer(window).continue_button.isHidden()
    await press(window, Qt.Key.Key_Escape)
    await ready(window)
    assert last(window).status == "stopped"


async def keep_writing(window: MainWindow, tokens: int) -> None:
    """Click, and wait for so many tokens more."""
    before = len(last(window).tokens)
    await click(footer(window).continue_button)
    await until(lambda: len(last(window).tokens) >= before + tokens)


def test_a_stopped_answer_goes_on(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await stopped(window)
        first = last(window)
        assert first.finished
        button = footer(window).continue_button
        assert button.isVisible()
        assert button.text() == "Continue"
        await keep_writing(window, 8)
        turn = window.controller.chats.open.turns[-1]
        assert turn.answer.tokens[: len(first.tokens)] == first.tokens
        assert footer(window).continue_button.isHidden()
        window.controller.asking.stop()
        await ready(window)
        (turn,) = window.controller.chats.open.turns
        tokens = turn.answer.tokens
        # One answer: its words, its places and its steps are counted through.
        assert turn.answer.text == "ECHO 1:" + "".join(f" w{n}" for n in range(1, len(tokens)))
        assert [token.position for token in tokens] == list(range(len(tokens)))
        assert {token.request for token in tokens} == {turn.id}
        steps = [token.step for token in tokens]
        assert steps == sorted(steps)
        assert set(steps) == set(range(1, steps[-1] + 1))
        assert shown(window) == turn.answer.text
        finished = turn.answer.finished
        assert finished
        stats = finished.stats
        assert stats.tokens == len(tokens) == stats.accepted + stats.bonus + stats.normal
        assert stats.steps == stats.bonus + stats.normal == steps[-1]
        assert (stats.prompt_tokens, stats.read_tokens) == (10, 10)
        assert f"{len(tokens):,} tokens" in footer(window).stats.text
        # The second part is tinted, too.
        body = window.views.transcript.answer(turn.id)
        assert body
        inked = {ink.token for box in body.body.boxes for ink in box.inks.inks if ink.origin != "normal"}
        assert max(inked) > len(first.tokens)
        assert footer(window).continue_button.isVisible()

    async def again(window: MainWindow) -> None:
        await ready(window)
        answer = last(window)
        assert answer.finished
        assert answer.finished.stats.tokens == len(answer.tokens)
        assert f"{len(answer.tokens):,} tokens" in footer(window).stats.text
        await keep_writing(window, 4)
        window.controller.asking.stop()
        await ready(window)
        assert last(window).tokens[: len(answer.tokens)] == answer.tokens

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


def test_the_starter_model_says_what_it_would_have_said(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window, 120)
        words: list[str] = []
        for tokens in (30, 12):
            window.controller.chat.start()
            settings = [("sampling.max_tokens", tokens), ("sampling.temperature", 0.0)]
            window.views.inspector.set_settings(assign_all(Settings(), settings))
            ask(window, "Name the days of the week.")
            await ready(window, 120)
            assert last(window).finished
            words.append(last(window).text)
        assert words[0].startswith(words[1])
        await click(footer(window).continue_button)
        await ready(window, 120)
        assert len(last(window).tokens) == 24
        assert last(window).text == shown(window)
        assert words[0].startswith(last(window).text)
        finished = last(window).finished
        assert finished
        assert finished.stats.tokens == 24

    play(qapp, scene, command=worker_command())


async def test_an_answer_whose_worker_was_killed_goes_on(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 6)
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    first = last(window)
    assert first.status == "cut_off"
    window.controller.restart()
    await ready(window)
    await keep_writing(window, 6)
    assert window.views.composer.edit.hasFocus()
    assert last(window).tokens[: len(first.tokens)] == first.tokens
    window.controller.asking.stop()
    await ready(window)
    finished = last(window).finished
    assert finished
    assert finished.stats.tokens == len(last(window).tokens)
    assert last(window).note == ""


def test_an_answer_that_quitting_cut_off_goes_on_after_the_next_start(
    qapp: QApplication, tmp_path: Path
) -> None:
    async def quits(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 6)

    async def again(window: MainWindow) -> None:
        await ready(window)
        first = last(window)
        assert first.status == "cut_off"
        assert first.note == "Draftlight was closed before this answer was finished."
        await keep_writing(window, 6)
        assert last(window).tokens[: len(first.tokens)] == first.tokens
        window.controller.asking.stop()
        await ready(window)

    play(qapp, quits, folder=tmp_path)
    play(qapp, again, folder=tmp_path)
