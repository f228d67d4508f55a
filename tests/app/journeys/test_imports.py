"""Chats of other programs in the real window: imported, imported again, undone, dropped, stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton

from app.chat.answer import AnswerView
from app.chat.answer_body import ThoughtHead
from app.controllers import importing as importing_module
from app.session.chats.chats import utc_now
from app.session.chats.conversation import Conversation
from app.shell.window import MainWindow
from app.store.chat_files import to_json
from app.store.library import Library
from core.events import Message
from core.settings import read
from tests.app.stage import Stage, answer_view, drop, last, play, ready, until
from tests.core.chat_archives import samples


async def imported(window: MainWindow, *files: Path) -> None:
    window.controller.chat.importing.import_from(files)
    await until(lambda: not window.controller.chat.importing.is_busy)


def titles(window: MainWindow) -> list[str]:
    return [each.title for each in window.controller.chats.listed()]


@pytest.mark.sweep
async def test_an_archive_is_imported_once_and_its_chats_go_on(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    file.write_bytes(samples.chatgpt_archive([samples.chatgpt_chat(1), samples.chatgpt_chat(2)]))
    home = tmp_path / "home"

    window = await stage.ready(folder=home)
    controller, notice = window.controller, window.views.notice_bar
    await imported(window, file)
    assert sorted(titles(window)) == ["Lighthouse 1", "Lighthouse 2"]
    assert notice.text == "Imported 2 chats from ChatGPT. Not imported: 2 tool calls and results."
    chat = controller.chats.open
    assert [len(turn.versions) for turn in chat.turns] == [2, 2]
    assert last(window).text == "The lamp is from 1902."
    (thought,) = window.findChildren(ThoughtHead)
    assert thought.text() == "Thought"
    window.views.composer.set_text("And its keeper? Write 5")
    window.views.composer.send_button.click()
    await until(lambda: len(controller.chats.open.turns) == 3 and last(window).over)
    went_on = controller.chats.open
    await imported(window, file)
    assert notice.text.startswith("2 chats from ChatGPT were imported before.")
    assert controller.chats.get(went_on.id) == went_on
    (other,) = [each.id for each in controller.chats.listed() if each.title == "Lighthouse 2"]
    controller.chat.select(other)
    window.views.composer.set_text("Half a thought")
    longer = samples.chatgpt_chat(2)
    nodes = longer["mapping"]
    nodes.update(
        [
            samples.chatgpt_node("q9", "a4", "user", "And its colour?"),
            samples.chatgpt_node("a9", "q9", "assistant", "White."),
        ]
    )
    longer["current_node"] = "a9"
    file.write_bytes(samples.chatgpt_archive([samples.chatgpt_chat(1), longer]))
    await imported(window, file)
    assert notice.text.startswith("Updated 1 chat from ChatGPT; 1 was imported before.")
    assert len(titles(window)) == 2
    assert window.views.transcript.answer_text(controller.chats.open.turns[-1].id) == "White."
    assert window.views.composer.text == "Half a thought"
    window = await stage.open(folder=home)
    chats = window.controller.chats
    lengths = {each.title: each.turns for each in chats.listed()}
    assert lengths == {"Lighthouse 1": 3, "Lighthouse 2": 3}
    (hit,) = chats.search("keeper")
    assert chats.summary(hit.chat_id).title == "Lighthouse 1"


@pytest.mark.sweep
async def test_details_and_undo_and_an_archive_is_dropped_on_the_window(stage: Stage, tmp_path: Path) -> None:
    chats = [samples.export("claude"), samples.export("open_webui"), samples.export("lm_studio")]
    files = []
    for number, raw in enumerate(chats):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(raw))

    window = await stage.open(folder=tmp_path / "home")
    await imported(window, *files)
    notice, controller = window.views.notice_bar, window.controller
    assert sorted(titles(window)) == ["Buoys", "Knots", "Tide tables"]
    knots = next(each.id for each in controller.chats.listed() if each.title == "Knots")
    controller.chat.select(knots)
    assert read(window.views.inspector.settings, "chat.system_prompt") == "Be brief."
    assert notice.action_button.text() == "Details…"
    notice.action_button.click()
    (box,) = window.findChildren(QMessageBox)
    assert box.text() == "Imported 3 chats."
    assert box.informativeText() == "Not imported: 2 images, 1 file, 5 tool calls and results."
    assert box.detailedText().split("\n") == [
        "“Tide tables”: 1 image, 2 tool calls and results",
        "“Knots”: 1 image, 2 tool calls and results",
        "“Buoys”: 1 file, 1 tool call or result",
    ]
    (undo,) = [each for each in box.findChildren(QPushButton) if each.text() == "Undo Import"]
    undo.click()
    await until(lambda: not controller.chat.importing.is_busy)
    assert titles(window) == []
    assert len(controller.chats.deleted()) == 3
    assert notice.text == "Moved 3 chats to “Recently Deleted”."
    await imported(window, *files)
    assert sorted(titles(window)) == ["Buoys", "Knots", "Tide tables"]
    assert controller.chats.deleted() == ()

    archive, note = tmp_path / "chats.zip", tmp_path / "note.txt"
    archive.write_bytes(samples.chatgpt_archive([samples.chatgpt_chat(1)]))
    note.write_text("A note")

    controller.chat.start()
    drop(window, archive, note)
    await until(lambda: "Lighthouse 1" in titles(window))
    await until(lambda: not window.controller.chat.importing.is_busy)
    answer = answer_view(window)
    assert answer.footer.strip.isHidden()  # nobody knows how its tokens were written
    lines = [each.footer.stats.figures for each in window.views.transcript.findChildren(AnswerView)]
    assert len(lines) > 1
    assert [line for line in lines if line] == ["imported, without figures"]  # said once in a chat
    window.controller.chat.start()
    assert [each.name for each in window.views.composer.attachments] == ["note.txt"]


@pytest.mark.quiet
def test_the_end_of_a_long_import_is_spread_over_several_turns(qapp: QApplication, tmp_path: Path) -> None:
    """Listing the chats and opening the first may not block the UI thread together."""
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([samples.chatgpt_chat(number) for number in range(500)]))
    steps: list[str] = []

    async def scene(window: MainWindow) -> None:
        await ready(window)
        window.views.sidebar.list.model().rowsInserted.connect(lambda *_: steps.append("listed"))
        QTimer(window, interval=1, timeout=lambda: steps.append("turn")).start()
        window.views.pages.currentChanged.connect(lambda page: steps.append("opened"))
        await imported(window, file)
        assert len(titles(window)) == 500

    play(qapp, scene, folder=tmp_path / "home", block_ms=50)
    listed = steps.index("listed")
    assert "turn" in steps[listed : steps.index("opened")]


async def test_a_long_import_can_be_stopped_and_keeps_the_window_alive(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog of `play` measures how long the window is blocked."""
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([samples.chatgpt_chat(number) for number in range(1_500)]))
    home = tmp_path / "home"
    monkeypatch.setattr(importing_module, "TOLD_EVERY_S", 0.05)
    monkeypatch.setattr(importing_module, "UNSAVED_CHARACTERS", 10_000)
    found: list[int] = []

    window = await stage.open(folder=home)
    controller, notice = window.controller, window.views.notice_bar
    controller.chat.importing.import_from([file])
    await until(lambda: "%" in notice.text and len(controller.chats.listed()) > 0)
    assert notice.action_button.text() == "Stop"
    notice.action_button.click()
    await until(lambda: not controller.chat.importing.is_busy)
    found.append(len(titles(window)))
    assert 0 < found[0] < 1_500
    assert notice.text.startswith(f"The import was stopped. Imported {found[0]:,} chats from ChatGPT.")
    # Closing the window ends the second import.
    controller.chat.importing.import_from([file])
    await until(lambda: len(controller.chats.listed()) > found[0])
    await stage.close()
    library = Library(home)
    assert len(library.summaries()) > found[0]
    library.close()


async def test_what_is_imported_meanwhile_is_not_forgotten_and_undo_stays(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing_module, "TOLD_EVERY_S", 0.0)
    first, second, many = (tmp_path / name for name in ("first.md", "second.md", "many.json"))
    for file in (first, second):
        file.write_text(f"# {file.stem}\n\n## You\nWhen?\n\n## Assistant\nNow.\n")
    many.write_text(json.dumps([samples.chatgpt_chat(number) for number in range(1500)]))
    window = await stage.open()
    importing, notice = window.controller.chat.importing, window.views.notice_bar

    drafted = tmp_path / "drafted.json"  # a chat without a question
    drafted.write_bytes(to_json([Conversation("d", utc_now(), draft=Message("user", "Words"))]))
    await imported(window, first, drafted)
    notice.action_button.click()  # Undo
    await imported(window, second)
    assert titles(window) == ["second"]
    assert notice.text == "Imported 1 chat."

    # Its Undo stays while many are imported, and is done.
    importing.import_from([many])
    await until(lambda: len(titles(window)) > 1)
    assert notice.action_button.text() == "Undo"
    notice.action_button.click()
    await until(lambda: notice.text.startswith("Importing"))
    importing.stop()
    importing.import_from([first])
    await until(lambda: not importing.is_busy)
    assert "first" in titles(window)
    assert "second" not in titles(window)
    assert notice.text == "Imported 1 chat."
