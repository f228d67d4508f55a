"""The composer's ring: one sum of chat, documents and typed text, whatever the worker is doing."""

from __future__ import annotations

import pytest

from app.session.chats.conversation import Answer, Turn
from app.shell.window import MainWindow
from core.events import TYPED, Attachment, Message, Token
from core.settings import assign
from tests.app.stage import Stage, answering, asked, stop, until

DOCUMENT = "word " * 700
OTHER = "other words " * 250
# The fake worker's tokens are words.
DOCUMENTS = 700 + 500


def shown(window: MainWindow) -> str:
    return window.views.composer.pill.text


def attach(window: MainWindow) -> None:
    window.views.composer.attach(Attachment("one.txt", DOCUMENT))
    window.views.composer.attach(Attachment("two.txt", OTHER))
    window.views.composer.set_text("And then?")


def imported(window: MainWindow, words: int) -> str:
    """A chat from a file, which no answer has counted, with an answer of so many words. Returns its id."""
    chats = window.controller.chats
    answer = Answer((Token("t", TYPED, "said " * words, "normal", 1, 0),), "imported")
    question = Message("user", "What is said of it?", (Attachment("old.txt", "old " * 300),))
    chats.start()
    chat = chats.open.with_turns((Turn("t", question, answer),))
    chats.keep(chat)
    return chat.id


async def test_the_sum_is_the_same_idle_busy_and_after_coming_back(window: MainWindow) -> None:
    pill, chats = window.views.composer.pill, window.controller.chats
    await asked(window, "write 3")
    held_tokens = chats.open.turns[-1].answer.finished.stats.context_used_tokens
    attach(window)
    idle = f"{held_tokens + DOCUMENTS + 2:,} of 8,192 tokens"
    await until(lambda: shown(window) == idle)
    assert pill.toolTip().split("\n")[1:] == [
        f"This chat, with system prompt and template: {held_tokens} tokens",
        "Attached documents: 1,200 tokens",
        "Typed text: 2 tokens",
    ]
    chat_id = chats.open.id
    window.controller.chat.start()
    await answering(window)  # another chat, for long
    window.controller.chat.select(chat_id)
    await until(lambda: shown(window) == idle)
    window.views.composer.attach(Attachment("three.txt", "three " * 50))
    await until(lambda: shown(window) == f"{held_tokens + DOCUMENTS + 52:,} of 8,192 tokens")
    window.views.composer.submit()  # it waits in the queue, and the ring is that of the chat alone
    await until(lambda: shown(window) == f"{held_tokens} of 8,192 tokens")
    await stop(window)


async def test_an_imported_chat_has_the_tokens_that_its_prompt_will_have(window: MainWindow) -> None:
    unseen_id, chat_id = imported(window, 500), imported(window, 400)  # and 305 each
    window.controller.chat.show()
    await until(lambda: shown(window) == "705 of 8,192 tokens")
    attach(window)
    await until(lambda: shown(window) == f"{705 + DOCUMENTS + 2:,} of 8,192 tokens")
    window.controller.chat.start()
    await answering(window)
    window.controller.chat.select(chat_id)
    await until(lambda: shown(window) == f"{705 + DOCUMENTS + 2:,} of 8,192 tokens")
    # This one's prompt, with system prompt and template, cannot be counted now, but its texts are.
    window.controller.chat.select(unseen_id)
    await until(lambda: shown(window) == "~805 of 8,192 tokens")
    await stop(window)
    await until(lambda: shown(window) == "805 of 8,192 tokens")


async def test_a_system_prompt_counts_before_the_first_question(window: MainWindow) -> None:
    await until(lambda: shown(window) == "0 of 8,192 tokens")
    inspector = window.views.inspector
    inspector.change_settings(assign(inspector.settings, "chat.system_prompt", "Be very brief."))
    await until(lambda: shown(window) == "3 of 8,192 tokens")


async def test_without_a_model_figures_are_estimates_and_say_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "fail")
    window = await stage.open()
    await until(lambda: window.controller.link.connected and not window.controller.link.loading)
    attach(window)
    await until(lambda: window.views.composer.pill.isVisible())
    pill = window.views.composer.pill
    assert shown(window).startswith("~")
    assert shown(window).endswith(" tokens")
    await until(lambda: all("~" in line for line in pill.toolTip().split("\n")))
    assert all(chip.note.startswith("~") for chip in window.views.composer.chips.chips)
    # No estimate decides whether it fits.
    window.views.composer.attach(Attachment("big.txt", "word " * 90_000))
    await until(lambda: pill.used_tokens > 90_000)
    assert not window.views.composer.notice.isVisible()
