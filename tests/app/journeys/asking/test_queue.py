"""What is sent while an answer runs waits for its end, is seen, can be taken back, and is never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.launch.scenario import ask
from app.session.chats.conversation import NOTHING_WRITTEN
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.store.chat_store import ChatStore
from tests.app.stage import click, last, play, press, ready, until


async def answering(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 3)


async def typed(window: MainWindow, text: str) -> None:
    window.views.composer.set_text(text)
    window.views.composer.edit.setFocus()
    await press(window, Qt.Key.Key_Return)


async def test_it_is_sent_when_the_answer_has_ended(window: MainWindow) -> None:
    await answering(window)
    await typed(window, "write 3")
    await typed(window, "write 4")
    bar = window.views.queue_bar
    assert bar.isVisible()
    assert bar.text == "Next: write 3 (and 1 more)"
    assert window.views.composer.text == ""
    window.views.composer.set_text("still being written")
    window.controller.asking.stop()
    await until(lambda: len(window.controller.chats.open.turns) == 3, what="not sent")
    await ready(window)
    questions = [turn.user.content for turn in window.controller.chats.open.turns]
    assert questions == ["write 100000 slowly", "write 3", "write 4"]
    assert bar.isHidden()
    assert window.views.composer.text == "still being written"


async def test_it_can_be_taken_back(window: MainWindow) -> None:
    await answering(window)
    await typed(window, "write 3")
    await click(window.views.queue_bar.remove_button)
    assert window.views.queue_bar.isHidden()
    assert window.views.composer.text == "write 3"
    window.controller.asking.stop()
    await ready(window)
    assert len(window.controller.chats.open.turns) == 1


async def test_after_a_failure_it_waits_and_says_why(window: MainWindow) -> None:
    bar = window.views.queue_bar
    await ready(window)
    ask(window, "break 40 slowly")
    await until(lambda: len(last(window).tokens) > 3)
    await typed(window, "write 3")
    assert bar.send_button.isHidden()
    await until(lambda: window.controller.link.phase is Phase.READY)
    assert last(window).status == "failed"
    assert bar.text == "Not sent because the last answer failed: write 3"
    await click(bar.send_button)
    await until(lambda: last(window).status == "finished")
    assert [turn.user.content for turn in window.controller.chats.open.turns][1:] == ["write 3"]
    assert bar.isHidden()


def test_what_waits_at_the_end_waits_at_the_next_start(qapp: QApplication, tmp_path: Path) -> None:
    async def quits(window: MainWindow) -> None:
        await answering(window)
        await typed(window, "write 3")
        window.views.composer.set_text("and this")

    async def again(window: MainWindow) -> None:
        bar = window.views.queue_bar
        assert bar.text == "Not sent because the last answer failed: write 3"
        assert window.views.composer.text == "and this"
        await ready(window)
        assert len(window.controller.chats.open.turns) == 1  # what broke off is to be seen first
        await click(bar.send_button)
        await until(lambda: last(window).status == "finished")
        assert window.views.composer.text == "and this"

    play(qapp, quits, folder=tmp_path)
    play(qapp, again, folder=tmp_path)


def test_it_is_in_the_database_at_once(qapp: QApplication, tmp_path: Path) -> None:
    """Another process finds it there while the answer runs, as it would after a crash."""

    async def scene(window: MainWindow) -> None:
        await answering(window)
        await typed(window, "write 3")
        assert window.controller.home.library
        assert window.controller.home.library.flush()
        store = ChatStore(tmp_path / "chats.db", read_only=True)
        kept = store.load(window.controller.chats.open.id)
        store.close()
        assert [message.content for message in kept.queued] == ["write 3"]
        assert kept.draft == NOTHING_WRITTEN

    play(qapp, scene, folder=tmp_path)


def test_it_is_sent_in_a_chat_that_is_not_open(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await answering(window)
        await typed(window, "write 3")
        first = window.controller.chats.open.id
        window.controller.chat.start()
        window.views.composer.set_text("another chat")
        window.controller.asking.stop()
        chats = window.controller.chats
        await until(lambda: len(chats.get(first).turns) == 2 and chats.get(first).turns[-1].answer.over)
        assert chats.get(first).turns[-1].answer.text
        assert not chats.open.turns
        assert window.views.composer.text == "another chat"
        assert window.views.queue_bar.isHidden()

    play(qapp, scene, folder=tmp_path)


def test_closing_ends_after_a_chat_with_a_queue_was_deleted_for_good(
    qapp: QApplication, tmp_path: Path
) -> None:
    """`play` waits for the window to close: this one never did."""

    async def scene(window: MainWindow) -> None:
        await answering(window)
        await typed(window, "write 3")
        await typed(window, "write 4")
        first = window.controller.chats.open.id
        window.controller.asking.stop()
        await until(lambda: len(window.controller.chats.open.turns) == 3)
        await ready(window)
        window.controller.chat.listing.delete(first)
        window.controller.chat.listing.erase(first)

    play(qapp, scene, folder=tmp_path)


def test_closing_ends_though_a_part_of_it_fails(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("it cannot be left")

    async def scene(window: MainWindow) -> None:
        await ready(window)
        monkeypatch.setattr(window.controller.chat, "leave", fail)

    play(qapp, scene, errors=["it cannot be left"])


async def test_an_answer_that_loops_is_stopped_folded_and_can_be_continued(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 100000 slowly over 7")
    await ready(window)
    answer = last(window)
    assert 21 <= len(answer.tokens) < 60
    shown = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert shown
    assert "the answer repeated itself" in shown.footer.stats.text
    head, *hidden = [box for box in shown.body.boxes if box.piece.thought >= 0]
    assert head.piece.kind == "thought"
    assert all(box.hidden for box in hidden)
    first = shown.body.boxes[0]
    assert first.piece.text.split()[-7:] == [f"w{number}" for number in (1, 2, 3, 4, 5, 6, 0)]
    assert "".join(box.piece.text for box in hidden).split()[0] == "w1"
    assert shown.footer.continue_button.isVisible()
    shown.footer.continue_button.click()
    await until(lambda: len(last(window).tokens) > len(answer.tokens))
    await ready(window)
    assert len(last(window).tokens) >= len(answer.tokens) + 240  # a person asked for more
    window.app_settings.set("writing.stop_repeating", False)
    ask(window, "write 900 over 7")
    await ready(window)
    assert last(window).status == "finished"


async def test_the_field_says_that_what_is_sent_now_waits(window: MainWindow) -> None:
    edit = window.views.composer.edit
    await ready(window)
    before = edit.placeholder
    await answering(window)
    assert edit.placeholder == "Your next message, sent after this answer"
    window.controller.asking.stop()
    await ready(window)
    assert edit.placeholder not in (before, "Your next message, sent after this answer")  # a follow-up
