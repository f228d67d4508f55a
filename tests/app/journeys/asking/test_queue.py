"""What is sent too early waits, is seen, can be edited and removed, and is never lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.session.chats.conversation import NOTHING_WRITTEN
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.store.chat_store import ChatStore
from core.events import Attachment, Generate
from tests.app.hand import Hand
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    last,
    play,
    press,
    ready,
    sent,
    set_value,
    until,
)


async def settled() -> None:
    """Whatever was put off to the next turns of the event loop has run."""
    for _ in range(20):
        await asyncio.sleep(0.005)


@pytest.mark.sweep
async def test_what_waits_is_sent_after_the_answer_and_held_by_a_withdrawn_one(window: MainWindow) -> None:
    hand, edit = Hand(window), window.views.composer.edit
    before = edit.placeholderText()
    await hand.send("write 40 slowly")
    await until(lambda: edit.placeholderText() == "Your next message, sent after this answer")
    await hand.send("write 3")
    await hand.send("write 4")
    assert hand.waiting == ["write 3", "write 4"]
    assert window.views.queue_list.text == "Sent after this answer"
    assert hand.draft == ""
    await hand.type("still being written")
    await until(lambda: len(hand.questions) == 3, what="not sent")
    await ready(window)
    assert hand.questions == ["write 40 slowly", "write 3", "write 4"]
    assert hand.waiting == []
    assert hand.draft == "still being written"
    assert edit.placeholderText() not in (before, "Your next message, sent after this answer")  # a follow-up

    window.controller.chat.start()
    hand = Hand(window)
    await answering(window)
    for text in ("first", "second", "third"):
        await hand.send(text)
    await hand.type("half a thought")
    await hand.click("Remove waiting message 1")
    assert hand.waiting == ["second", "third"]
    assert hand.draft == "half a thought"  # what was removed is gone, nothing else
    await hand.click("Edit waiting message 2")
    assert hand.waiting == ["second"]
    assert hand.draft == "third\n\nhalf a thought"
    assert hand.keyboard == "message"
    # While a sent message is edited, a waiting one goes into the draft.
    await hand.press(Qt.Key.Key_Escape)
    await ready(window)
    await hand.type("a draft")
    window.controller.asking.edit()
    assert hand.draft == "write 100000 slowly"
    await hand.click("Edit waiting message 1")
    assert hand.draft == "write 100000 slowly"
    window.controller.asking.cancel_edit()
    assert hand.draft == "second\n\na draft"

    # Without the document, the follow-ups would be about nothing.
    window.controller.chat.start()
    await hand.type("")
    hand = Hand(window)
    window.views.composer.attach(Attachment("a.txt", "The ferry leaves at nine."))
    await hand.send("read 100 slowly")
    await hand.send("And back?")
    await hand.send("Since when?")
    await hand.press(Qt.Key.Key_Escape)
    await ready(window)
    await settled()
    assert hand.questions == []
    assert hand.draft == "read 100 slowly"
    assert [each.name for each in window.views.composer.attachments] == ["a.txt"]
    assert hand.waiting == ["And back?", "Since when?"]
    assert window.views.queue_list.text.startswith("On hold: last message unsent.")
    await hand.ask("write 3")  # in its place; then the others go on
    await until(lambda: len(hand.questions) == 3 and hand.answer.over, what="the queue does not go on")
    assert hand.questions == ["write 3", "And back?", "Since when?"]


async def test_a_queue_waits_for_an_edit_and_after_a_deletion_for_its_author(window: MainWindow) -> None:
    hand, controller, chats = Hand(window), window.controller, window.controller.chats
    await asked(window, "write 2")
    first = chats.open.id
    controller.chat.start()
    await answering(window)
    controller.chat.select(first)
    await hand.send("write 3")
    controller.asking.edit()
    controller.asking.readiness.stop_running()
    await ready(window)
    await settled()
    assert hand.waiting == ["write 3"]
    assert window.views.queue_list.text == "Sent after you send or cancel the edit"
    controller.asking.cancel_edit()
    await until(lambda: len(hand.questions) == 2 and hand.answer.over)
    await answering(window)
    controller.chat.start()
    await hand.send("write 4")
    queued = chats.open.id
    controller.chat.start()
    assert chats.open.id != queued
    controller.chat.listing.delete(queued)
    controller.chat.listing.undo()
    controller.asking.readiness.stop_running()
    await ready(window)
    await settled()
    assert (hand.waiting, hand.questions) == (["write 4"], [])
    assert window.views.queue_list.text.startswith("On hold: chat was deleted.")


@pytest.mark.sweep
@pytest.mark.parametrize("question", ["write 100000 slowly", "break 40 slowly"])
async def test_a_stopped_or_failed_answer_holds_the_queue(window: MainWindow, question: str) -> None:
    hand = Hand(window)
    await hand.send(question)
    await until(lambda: len(hand.answer.tokens) > 3)
    await hand.send("write 3")
    if question.startswith("write"):
        await hand.press(Qt.Key.Key_Escape)
    await ready(window)
    await settled()
    assert hand.questions == [question]
    assert hand.waiting == ["write 3"]
    why = "stopped" if question.startswith("write") else "failed"
    held = window.views.queue_list.text
    assert held == f"On hold: last answer {why}. “Send Now” continues."
    await hand.click("Send Now")
    await until(lambda: hand.answer.status == "finished")
    assert hand.questions == [question, "write 3"]
    assert hand.waiting == []


async def test_return_while_the_model_loads_is_kept_and_sent(stage: Stage) -> None:
    window = await stage.open()
    hand = Hand(window)
    assert window.controller.link.phase in (Phase.STARTING, Phase.LOADING)
    await hand.send("write 3")
    await hand.send("write 4")
    assert hand.waiting == ["write 3", "write 4"]
    assert window.views.queue_list.text == "Sent as soon as the model is ready"
    await until(lambda: len(hand.questions) == 2 and hand.answer.over)
    assert hand.questions == ["write 3", "write 4"]


@pytest.mark.sweep
async def test_nothing_is_sent_at_the_next_start_without_its_author_but_in_a_chat_that_is_not_open(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    hand, chats = Hand(window), window.controller.chats
    await hand.send("write 100 slowly")
    await hand.send("write 3")
    first = chats.open.id
    window.controller.chat.start()
    window.views.composer.set_text("another chat")
    await until(lambda: len(chats.get(first).turns) == 2 and chats.get(first).turns[-1].answer.over)
    assert chats.get(first).turns[-1].answer.text
    assert not chats.open.turns
    assert hand.draft == "another chat"
    assert hand.waiting == []
    # Erased for good, it does not keep the window from closing.
    window.controller.chat.listing.delete(first)
    window.controller.chat.listing.erase(first)

    window.controller.chat.start()
    await hand.type("")
    await answering(window)
    await Hand(window).send("write 3")
    # Another process finds it at once, as it would after a crash.
    assert window.controller.home.library.flush()
    store = ChatStore(tmp_path / "chats.db", read_only=True)
    kept = store.load(window.controller.chats.open.id)
    store.close()
    assert [each.message.content for each in kept.queued] == ["write 3"]
    assert kept.draft == NOTHING_WRITTEN
    window.views.composer.set_text("and this")

    window = await stage.ready(folder=tmp_path)
    hand = Hand(window)
    await settled()
    assert hand.waiting == ["write 3"]
    assert window.views.queue_list.text.startswith("On hold since the last start.")
    assert hand.draft == "and this"
    assert len(hand.questions) == 1  # what broke off is to be seen first
    await hand.click("Send Now")
    await until(lambda: last(window).status == "finished")
    assert hand.draft == "and this"


@pytest.mark.sweep
async def test_each_message_is_answered_with_the_settings_that_it_was_queued_with(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    hand, controller, commands = Hand(window), window.controller, sent(window, Generate)
    set_value(window, "drafting.drafter", "ngram-mod")
    await answering(window)
    header, queue = window.views.header, window.views.queue_list
    running = header.subtitle
    assert "N-gram mod" in running
    await hand.type("write 2")
    await press(window, Qt.Key.Key_Return)
    assert [row.settings.text() for row in queue.rows] == [""]
    set_value(window, "drafting.drafter", "off")
    set_value(window, "sampling.temperature", 0.5)
    await hand.type("write 3")
    await press(window, Qt.Key.Key_Return)
    set_value(window, "sampling.temperature", 0.9)
    # What runs is named until it ends, also after another chat was in view; each row names what differs.
    chat_id = controller.chats.open.id
    for _ in range(2):
        assert header.subtitle == running
        assert "N-gram mod" in str(answer_view(window).facts(2))
        assert window.views.legend.sources == ""  # of the running answer, not of the last one
        assert queue.rows[0].settings.text().endswith("and 1 more")
        assert queue.rows[0].settings.toolTip().splitlines()[1] == "Temperature: 0"
        assert [row.settings.text() for row in queue.rows][1] == "Temperature: 0.5"
        controller.chat.start()
        assert "drafting with Auto" in header.subtitle  # of the new chat
        controller.chat.select(chat_id)
    set_value(window, "sampling.temperature", 0.5)
    assert [row.settings.text() for row in queue.rows][1] == ""
    set_value(window, "sampling.temperature", 0.9)
    controller.asking.readiness.stop_running()
    await ready(window)
    assert "off" in header.subtitle  # what comes next
    window = await stage.ready(folder=tmp_path)  # and at the next start
    hand, commands = Hand(window), sent(window, Generate)
    await hand.click("Send Now")
    await until(lambda: len(hand.questions) == 3 and hand.answer.over)
    used = [(each.settings.drafting.drafter, each.settings.sampling.temperature) for each in commands]
    assert used == [("ngram-mod", 0.0), ("off", 0.5)]


def test_closing_ends_though_a_part_of_it_fails(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("it cannot be left")

    async def scene(window: MainWindow) -> None:
        await ready(window)
        monkeypatch.setattr(window.controller.chat, "leave", fail)

    play(qapp, scene, errors=["it cannot be left"])


@pytest.mark.sweep
async def test_an_answer_that_loops_is_stopped_folded_and_can_be_continued(window: MainWindow) -> None:
    await asked(window, "write 100000 slowly over 7")
    answer = last(window)
    assert 21 <= len(answer.tokens) < 60
    shown = answer_view(window)
    assert "the answer repeated itself" in shown.footer.stats.figures
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
    await asked(window, "write 900 over 7")
    assert last(window).status == "finished"
