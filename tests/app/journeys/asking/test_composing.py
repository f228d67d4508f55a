"""Writing a message in the real window: pastes are counted, what does not fit finds a way."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt

from app.chat.intents import EditQueued, Intent, MoveToNewChat, UseExample
from app.session.chats.conversation import QueuedMessage
from app.shell.window import MainWindow
from core.events import Attachment, Message
from core.settings import Settings, assign
from tests.app.stage import Stage, asked, click, press, ready, set_value, until


def paste(window: MainWindow, text: str) -> None:
    mime = QMimeData()
    mime.setText(text)
    window.views.composer.edit.insertFromMimeData(mime)


async def test_what_is_pasted_is_counted_and_what_cannot_fit_is_cut_or_taken_along(stage: Stage) -> None:
    many, few = "words " * 2_500, "words " * 1_000  # the fake worker's tokens are words

    window = await stage.open()
    composer = window.views.composer
    await ready(window)
    paste(window, few)
    await until(lambda: composer.text == few)
    assert composer.attachments == ()
    composer.clear()
    paste(window, many)
    await until(lambda: [(a.text, a.tokens) for a in composer.attachments] == [(many, 2_500)])
    # The ring counts all of it, however much will be read.
    assert composer.pill.used_tokens == 2_500
    set_value(window, "prefill.mode", "off")
    assert composer.pill.used_tokens == 2_500
    await asked(window, "write 2")
    (turn,) = window.controller.chats.open.turns
    assert turn.user.attachments[0].tokens == 2_500

    window.controller.chat.start()
    # Else passages that fit would be read of it.
    off = assign(Settings(), "prefill.mode", "off")
    window.views.inspector.set_settings(off)
    window.views.inspector.defaults_changed.emit(off, frozenset())
    window.views.inspector.settings_changed.emit(off)
    await asked(window, "write 4")
    composer.attach(Attachment("big.txt", "word " * 9_000))
    composer.set_text("What is it?")
    notice = composer.notice
    await until(notice.isVisible)
    used = window.controller.chats.open.context_used_tokens
    assert used > 0
    over = used + 9_003 - 8_191
    assert not composer.send_button.isEnabled()
    assert window.views.banner.isHidden()
    assert notice.text == f"{over:,} tokens over this model’s limit of 8,192."
    await click(notice.buttons[0])
    assert window.controller.chats.open.turns == ()
    assert composer.text == "What is it?"
    await until(lambda: notice.text.startswith("812 tokens over"))
    await click(notice.buttons[0])
    await until(notice.isHidden)
    # The button that was pressed is gone, and with it the keyboard would be.
    assert composer.edit.hasFocus()
    assert composer.send_button.isEnabled()
    assert window.views.banner.isHidden()
    assert composer.attachments[0].name == "big.txt (beginning)"
    await until(lambda: 7_000 < composer.pill.used_tokens < 8_191)


MORE = Message("user", "more")


@pytest.mark.parametrize(
    ("act", "text"),
    [(UseExample(MORE), "mine\n\nmore"), (EditQueued(0, MORE), "more\n\nmine"), (MoveToNewChat(), "mine")],
)
async def test_the_draft_and_files_that_are_read_stay(
    window: MainWindow, tmp_path: Path, act: Intent, text: str
) -> None:
    controller, composer = window.controller, window.views.composer
    (tmp_path / "a.txt").write_text("words")
    await asked(window, "write 3")
    controller.chats.keep(controller.chats.open.with_queued((QueuedMessage(MORE),)))
    composer.attach_files([tmp_path])
    await press(window, Qt.Key.Key_Up)  # edits the last message if nothing is written
    assert not controller.asking.readiness.edited
    composer.clear()
    composer.set_text("mine")
    composer.attach_files([tmp_path])
    composer.attach(Attachment("b.txt", "other words"))
    assert composer.chips.files
    composer.intent.emit(act)
    assert composer.text == text
    await until(lambda: len(composer.attachments) == 2)
    assert {each.text for each in composer.attachments} == {"words", "other words"}
