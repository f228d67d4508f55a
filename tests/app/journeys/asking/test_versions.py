"""Asked again, nothing that was said goes: versions of an answer, one shown at a time, kept on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.chat.answer_footer import AnswerFooter
from app.chat.user_message import UserMessage
from app.controllers import strings
from app.launch.scenario import ask
from app.shell.window import MainWindow
from core.settings import Settings, assign
from tests.app.stage import click, last, play, press, ready, shown, until


def footer(window: MainWindow) -> AnswerFooter:
    """Of the last answer."""
    answer = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert answer
    return answer.footer


async def three_versions(window: MainWindow) -> None:
    """One question, asked, regenerated, and asked in other words."""
    await ready(window)
    ask(window, "write 5")
    await ready(window)
    window.controller.asking.regenerate()
    await ready(window)
    window.controller.asking.edit()
    ask(window, "write 9")
    await ready(window)


def test_regenerating_and_editing_keep_what_was_said(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await three_versions(window)
        (turn,) = window.controller.chats.open.turns
        assert [version.user.content for version in turn.versions] == ["write 5", "write 5", "write 9"]
        assert all(version.answer.finished for version in turn.versions)
        seeds = [version.answer.finished.effective.settings.sampling.seed for version in turn.versions]  # type: ignore[union-attr]
        assert seeds[0] == Settings().sampling.seed
        assert len(set(seeds)) == 3
        switch = footer(window).versions
        assert switch.isVisible()
        assert switch.text == "3/3"
        switch.setFocus()
        await press(window, Qt.Key.Key_Left)
        assert footer(window).versions.text == "2/3"
        assert footer(window).versions.hasFocus()
        assert window.controller.chats.open.turns[0].user.content == "write 5"
        assert shown(window) == turn.versions[1].answer.text
        await press(window, Qt.Key.Key_Left)
        await press(window, Qt.Key.Key_Left)
        assert footer(window).versions.text == "1/3"
        # What is shown is what the model goes by.
        messages = window.controller.chats.open.messages_for_request()
        assert [message.content for message in messages] == ["write 5", turn.versions[0].answer.text]
        ask(window, "write 2")
        await ready(window)
        assert len(window.controller.chats.open.turns) == 2
        assert window.controller.chats.open.turns[0].versions == turn.versions

    async def again(window: MainWindow) -> None:
        turn = window.controller.chats.open.turns[0]
        assert (turn.place, len(turn.versions)) == (0, 3)
        answer = window.views.transcript.answer(turn.id)
        assert answer
        assert answer.footer.versions.text == "1/3"

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


async def test_regenerating_replaces_one_answer_and_keeps_the_other_widgets(window: MainWindow) -> None:
    await ready(window)
    for words in ("write 3", "write 4"):
        ask(window, words)
        await ready(window)
    transcript = window.views.transcript
    turns = window.controller.chats.open.turns
    first, old = (transcript.answer(turn.id) for turn in turns)
    questions = transcript.findChildren(UserMessage)
    window.controller.asking.regenerate()
    await ready(window)
    again = window.controller.chats.open.turns[-1]
    assert transcript.answer(turns[0].id) is first
    assert transcript.answer(again.id) not in (None, old)
    assert transcript.findChildren(UserMessage) == questions
    assert transcript.is_following
    # The question that stays belongs to the new version.
    questions[-1].edit_button.click()
    assert window.views.composer.text == "write 4"
    ask(window, "write 6")
    await ready(window)
    await until(lambda: len(transcript.findChildren(UserMessage)) == 2, what="the edited question stays")
    assert transcript.findChildren(UserMessage)[0] is questions[0]
    assert transcript.answer(turns[0].id) is first
    versions = window.controller.chats.open.turns[-1].versions
    assert [each.user.content for each in versions] == ["write 4", "write 4", "write 6"]


async def test_a_stopped_regeneration_loses_neither_answer(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 6)
    window.controller.asking.stop()
    await ready(window)
    first = last(window)
    window.controller.asking.regenerate()
    await until(lambda: len(last(window).tokens) > 4)
    assert not footer(window).versions.isVisible()  # not before it is over
    window.controller.asking.stop()
    await ready(window)
    (turn,) = window.controller.chats.open.turns
    assert turn.versions[0].answer == first
    assert turn.versions[1].answer.status == "stopped"
    assert footer(window).versions.text == "2/2"


def test_an_edit_that_is_stopped_loses_neither_question(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 9")
        await ready(window)
        window.controller.asking.edit()
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 4)
        window.controller.asking.stop()
        await ready(window)

    async def again(window: MainWindow) -> None:
        (turn,) = window.controller.chats.open.turns
        assert [version.user.content for version in turn.versions] == ["write 9", "write 100000 slowly"]
        assert [version.answer.status for version in turn.versions] == ["finished", "stopped"]
        assert all(version.answer.tokens for version in turn.versions)

    play(qapp, scene, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


async def two_versions(window: MainWindow) -> None:
    ask(window, "write 3")
    await ready(window)
    window.controller.asking.regenerate()
    await ready(window)


def test_a_tint_that_was_chosen_holds_from_the_start(qapp: QApplication, tmp_path: Path) -> None:
    async def first(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 5")
        await ready(window)
        window.views.header.tint.set_value("never")

    async def second(window: MainWindow) -> None:
        await ready(window)
        answer = window.views.transcript.answer(window.controller.chats.open.turns[0].id)
        assert answer
        assert answer.body.mode == "never"

    play(qapp, first, folder=tmp_path)
    play(qapp, second, folder=tmp_path)


@pytest.mark.parametrize(
    ("temperature", "other_words", "says"), [(0, False, True), (1, False, False), (0, True, False)]
)
async def test_an_answer_that_must_be_equal_says_so(
    window: MainWindow, temperature: float, other_words: bool, says: bool
) -> None:
    await ready(window)
    window.views.inspector.set_settings(assign(Settings(), "sampling.temperature", temperature))
    ask(window, "write 5")
    await ready(window)
    notice = window.views.notice_bar
    assert notice.text == ""
    if other_words:
        window.controller.asking.edit()
        window.views.composer.set_text("write 5 differently")
        window.views.composer.submit()
    else:
        window.controller.asking.regenerate()
    await until(lambda: len(window.controller.chats.open.turns[-1].versions) == 2)
    await ready(window)
    assert (notice.text == strings.SAME_ANSWER) is says
    if says:
        await click(notice.action_button)
        await until(lambda: len(window.controller.chats.open.turns[-1].versions) == 3)
        await ready(window)
        finished = last(window).finished
        assert finished
        assert finished.effective.settings.sampling.temperature > 0
        assert notice.text == ""
