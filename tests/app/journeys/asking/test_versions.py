"""Asked again, nothing that was said goes: versions of an answer, one shown at a time, kept on disk."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt

from app.chat.user_message import UserMessage
from app.controllers import strings
from core.settings import Settings
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    click,
    last,
    press,
    ready,
    set_value,
    shown,
    stop,
    until,
)


async def test_regenerating_and_editing_keep_what_was_said_and_say_if_it_must_be_equal(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    chats = window.controller.chats
    await asked(window, "write 5")
    window.controller.asking.regenerate()
    await ready(window)
    window.controller.asking.edit()
    await asked(window, "write 9")
    (turn,) = chats.open.turns
    assert [version.user.content for version in turn.versions] == ["write 5", "write 5", "write 9"]
    seeds = [version.answer.finished.effective.settings.sampling.seed for version in turn.versions]
    assert seeds[0] == Settings().sampling.seed
    assert len(set(seeds)) == 3
    switch = answer_view(window).footer.versions
    assert switch.isVisible()
    assert switch.text() == "‹ 3/3 ›"
    switch.setFocus()
    await press(window, Qt.Key.Key_Left)
    switch = answer_view(window).footer.versions
    assert (switch.text(), switch.hasFocus()) == ("‹ 2/3 ›", True)
    assert chats.open.turns[0].user.content == "write 5"
    assert shown(window) == turn.versions[1].answer.text
    await press(window, Qt.Key.Key_Left)
    await press(window, Qt.Key.Key_Left)
    assert answer_view(window).footer.versions.text() == "‹ 1/3 ›"
    for key, text in (
        (Qt.Key.Key_Return, "‹ 2/3 ›"),
        (Qt.Key.Key_Space, "‹ 3/3 ›"),
        (Qt.Key.Key_Enter, "‹ 1/3 ›"),
    ):
        await press(window, key)
        assert answer_view(window).footer.versions.text() == text
    # What is shown is what the model goes by.
    messages = chats.open.messages_for_request()
    assert [message.content for message in messages] == ["write 5", turn.versions[0].answer.text]
    await asked(window, "write 2")
    assert len(chats.open.turns) == 2
    assert chats.open.turns[0].versions == turn.versions
    # A stopped edit loses neither question.
    window.controller.asking.edit()
    await answering(window)
    assert not answer_view(window).footer.versions.isVisible()  # not before it is over
    await stop(window)
    assert answer_view(window).footer.versions.text() == "‹ 2/2 ›"

    window = await stage.open(folder=tmp_path)
    first, second = window.controller.chats.open.turns
    assert (first.place, len(first.versions)) == (0, 3)
    assert answer_view(window, 0).footer.versions.text() == "‹ 1/3 ›"
    assert [version.user.content for version in second.versions] == ["write 2", "write 100000 slowly"]
    assert [version.answer.status for version in second.versions] == ["finished", "stopped"]
    assert all(version.answer.tokens for version in second.versions)

    window.controller.chat.start()
    for words in ("write 3", "write 4"):
        await asked(window, words)
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
    await asked(window, "write 6")
    await until(lambda: len(transcript.findChildren(UserMessage)) == 2, what="the edited question stays")
    assert transcript.findChildren(UserMessage)[0] is questions[0]
    assert transcript.answer(turns[0].id) is first
    versions = window.controller.chats.open.turns[-1].versions
    assert [each.user.content for each in versions] == ["write 4", "write 4", "write 6"]

    window.views.notice_bar.clear()
    notice, asking = window.views.notice_bar, window.controller.asking

    async def again(versions: int) -> None:
        await until(lambda: len(window.controller.chats.open.turns[-1].versions) == versions)
        await ready(window)

    for temperature, other_words, says in ((1, False, False), (0, True, False), *2 * [(0, False, True)]):
        window.controller.chat.start()
        set_value(window, "sampling.temperature", temperature)
        await asked(window, "write 5")
        assert notice.text == ""
        if other_words:
            asking.edit()
            window.views.composer.set_text("write 5 differently")
            window.views.composer.submit()
        else:
            asking.regenerate()
        await again(2)
        assert (notice.text == strings.SAME_ANSWER) is says, (temperature, other_words)
    await click(notice.action_button)
    await again(3)
    assert last(window).finished.effective.settings.sampling.temperature > 0
    assert notice.text == ""
