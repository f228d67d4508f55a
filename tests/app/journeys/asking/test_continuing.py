"""Going on with an answer that was stopped: in the same answer, with figures of all of it, and kept."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt

from app.chat.answer_footer import AnswerFooter
from app.shell.window import MainWindow
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    click,
    kill,
    last,
    press,
    ready,
    shown,
    stop,
    until,
)


def footer(window: MainWindow) -> AnswerFooter:
    answer = answer_view(window)
    return answer.footer


async def stopped_answer(window: MainWindow) -> None:
    await answering(window)
    assert footer(window).continue_button.isHidden()
    await press(window, Qt.Key.Key_Escape)
    await ready(window)
    assert last(window).status == "stopped"


async def keep_writing(window: MainWindow, tokens: int) -> None:
    """Click, and wait for so many tokens more."""
    before = len(last(window).tokens)
    await click(footer(window).continue_button)
    await until(lambda: len(last(window).tokens) >= before + tokens)


async def test_an_answer_goes_on_that_was_stopped_or_cut_off(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    await stopped_answer(window)
    first = last(window)
    button = footer(window).continue_button
    assert button.isVisible()
    assert button.text() == "Continue"
    await keep_writing(window, 8)
    turn = window.controller.chats.open.turns[-1]
    assert turn.answer.tokens[: len(first.tokens)] == first.tokens
    assert footer(window).continue_button.isHidden()
    await stop(window)
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
    stats = finished.stats
    assert stats.tokens == len(tokens) == stats.accepted + stats.bonus + stats.normal
    assert stats.steps == stats.bonus + stats.normal == steps[-1]
    assert (stats.prompt_tokens, stats.read_tokens) == (10, 10)
    assert f"{len(tokens):,} tokens" in footer(window).stats.figures
    # The second part is tinted, too.
    body = window.views.transcript.answer(turn.id)
    inked = {ink.token for box in body.body.boxes for ink in box.inks.inks if ink.origin != "normal"}
    assert max(inked) > len(first.tokens)
    assert footer(window).continue_button.isVisible()
    window = await stage.ready(folder=tmp_path)
    answer = last(window)
    assert answer.finished.stats.tokens == len(answer.tokens)
    assert f"{len(answer.tokens):,} tokens" in footer(window).stats.figures
    await keep_writing(window, 4)
    await stop(window)
    assert last(window).tokens[: len(answer.tokens)] == answer.tokens

    # Cut off because its worker was killed, or because the app was quit.
    window.controller.chat.start()
    await answering(window, tokens=6)
    await kill(window)
    first = last(window)
    assert first.status == "cut_off"
    window.controller.restart()
    await ready(window)
    await keep_writing(window, 6)
    assert window.views.composer.edit.hasFocus()
    assert last(window).tokens[: len(first.tokens)] == first.tokens
    answer = await stop(window)
    assert answer.finished.stats.tokens == len(answer.tokens)
    assert answer.note == ""
    await answering(window, tokens=6)

    window = await stage.ready(folder=tmp_path)
    first = last(window)
    assert first.status == "cut_off"
    assert first.note == "Draftlight was closed before this answer was finished."
    await keep_writing(window, 6)
    assert last(window).tokens[: len(first.tokens)] == first.tokens
    await stop(window)


async def test_the_model_says_what_it_would_have_said(stage: Stage, toy_folder: Path) -> None:
    window = await stage.ready(command=worker_command(), model=str(toy_folder))
    words: list[str] = []
    for tokens in (30, 12):
        window.controller.chat.start()
        settings = [("sampling.max_tokens", tokens), ("sampling.temperature", 0.0)]
        window.views.inspector.set_settings(assign_all(Settings(), settings))
        words.append((await asked(window, "Name the days of the week.")).text)
    assert words[0].startswith(words[1])
    await click(footer(window).continue_button)
    await ready(window)
    answer = last(window)
    assert len(answer.tokens) == answer.finished.stats.tokens == 24
    assert answer.text == shown(window)
    assert words[0].startswith(answer.text)
