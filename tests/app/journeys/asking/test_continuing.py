"""Going on with an answer that was stopped: in the same answer, with figures of all of it, and kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.chat.answer_footer import AnswerFooter
from app.chat.sources import SourceNumber
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import AnswerCited, Attachment, Citation
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


def test_citations_come_after_the_end_and_are_stored(qapp: QApplication, tmp_path: Path) -> None:
    """Of both parts of an answer; the second ones when another version is displayed in a closed chat."""
    support = "Dogs pay half."
    citation = Citation(len("ECHO 1: w1"), 0, 0, len(support))

    def numbers(window: MainWindow) -> list[str]:
        answer = window.views.transcript.answer(window.controller.chats.open.turns[0].id)
        assert answer
        return [each.text() for each in answer.body.findChildren(SourceNumber) if not each.isHidden()]

    async def scene(window: MainWindow) -> None:
        controller = window.controller
        await ready(window)
        window.views.composer.attach(Attachment("dogs.txt", support))
        await stopped(window)
        assert numbers(window) == []
        (turn,) = controller.chats.open.turns
        controller.handle(AnswerCited(turn.id, (citation,)))
        assert numbers(window) == ["1"]
        first = len(turn.answer.text)
        await keep_writing(window, 8)
        controller.asking.stop()
        await ready(window)
        (part,) = controller._answering._uncited
        controller.asking.regenerate()
        await until(lambda: len(last(window).tokens) > 4)
        controller.asking.stop()
        await ready(window)
        asked = controller.chats.open
        controller.chat.start()
        controller.handle(AnswerCited(part, (citation,)))
        controller.handle(AnswerCited("unknown", (citation,)))
        controller.chat.select(asked.id)
        version = controller.chats.open.turns[0].versions[0]
        assert version.id == turn.id
        assert version.answer.finished
        ends = [each.end for each in version.answer.finished.citations]
        assert ends == [citation.end, first + citation.end]
        assert numbers(window) == []

    async def again(window: MainWindow) -> None:
        await ready(window)
        await until(lambda: bool(window.controller.chats.open.turns))
        window.controller.asking.show_version(window.controller.chats.open.turns[0].id, 0)
        assert numbers(window) == ["1", "1"]

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


async def test_it_is_offered_where_it_can_be_done(window: MainWindow) -> None:
    await stopped(window)
    first = window.controller.chats.open.turns[-1].id
    ask(window, "write 5")
    await ready(window)
    # The one before has been answered to; only the last one can be gone on with.
    older = window.views.transcript.answer(first)
    assert older
    assert older.footer.continue_button.isHidden()
    assert footer(window).continue_button.isVisible()
    window.controller.asking.continue_answer(first)
    assert window.controller.link.phase is Phase.READY
    ask(window, "break 3")
    await ready(window)
    assert last(window).status == "failed"
    assert footer(window).continue_button.isVisible()


async def test_from_another_chat_and_by_key(window: MainWindow) -> None:
    await stopped(window)
    chat = window.controller.chats.open.id
    window.controller.chat.start()
    window.controller.chat.select(chat)
    button = footer(window).continue_button
    assert button.isVisible()
    button.setFocus()
    before = len(last(window).tokens)
    await press(window, Qt.Key.Key_Return)
    await until(lambda: len(last(window).tokens) > before)
    window.controller.asking.stop()
    await ready(window)


async def test_stopped_or_dead_before_its_first_word_it_is_as_before(window: MainWindow) -> None:
    await ready(window)
    ask(window, "read 40 slowly write 6")
    await ready(window)
    before = last(window)
    assert before.finished
    window.controller.asking.continue_answer(window.controller.chats.open.turns[-1].id)
    window.controller.asking.stop()
    await ready(window)
    assert last(window) == before
    assert footer(window).continue_button.isVisible()
    window.controller.asking.continue_answer(window.controller.chats.open.turns[-1].id)
    window.controller.restart()
    await ready(window)
    assert last(window) == before
    assert "stopped at the token limit" in footer(window).stats.text


@pytest.mark.sweep
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
