"""Damage, a full disk, and closing with unsaved changes, in the real window."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from app.controls.sheets import Question
from app.session.chats.conversation import Conversation
from app.shell.window import MainWindow
from app.store.chat_files import from_json
from app.store.copies import Backups
from app.store.library import Library
from tests.app.stage import Stage, asked, choose_in_sheet, click, last, ready, sheet, shown, until
from tests.app.store.chats import chat_of
from tests.app.store.disk import full_disk


def filled(folder: Path, *chats: Conversation) -> None:
    library = Library(folder)
    for chat in chats:
        library.save(chat)
    assert library.close()


async def question_on_closing(window: MainWindow) -> Question:
    """Close the window as a person does; returns the sheet that asks."""
    window.close()
    return await sheet(window, Question)


def damage(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(os.urandom(4096 * 4))


@pytest.mark.sweep
async def test_chats_are_restored_from_a_damaged_database_and_its_backup(
    stage: Stage, tmp_path: Path
) -> None:
    chats = [chat_of(number, 3, 100) for number in range(40)]
    filled(tmp_path, *chats)
    Backups(tmp_path / "chats.db").make()
    damage(tmp_path / "chats.db")

    window = await stage.open(folder=tmp_path)
    banner = window.views.banner
    await asked(window, "write 3")
    await until(lambda: banner.trouble is not None and banner.trouble.remedy == "repair")
    assert "damaged" in banner.trouble.title
    assert len(window.controller.chats.listed()) == 41
    assert shown(window) == last(window).text
    await asked(window, "write 4")
    await click(banner.remedy_button)
    assert "40 chats were saved in a new database." in banner.trouble.text
    assert "chats-damaged.db" in banner.trouble.text
    await click(banner.close_button)
    assert banner.isHidden()
    assert [len(turn.answer.tokens) for turn in window.controller.chats.open.turns] == [4, 4]
    window = await stage.open(folder=tmp_path)
    assert window.views.banner.isHidden()
    assert len(window.controller.chats.open.turns) == 2
    assert [window.controller.chats.get(chat.id) for chat in chats] == chats


async def test_a_repair_that_would_lose_chats_asks_again(stage: Stage, tmp_path: Path) -> None:
    filled(tmp_path, *(chat_of(number) for number in range(3)))
    connection = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    for table, name in (("chats", "id"), ("turns", "chat"), ("parts", "chat")):
        connection.execute(f"UPDATE {table} SET sum = 0 WHERE {name} = 'c1'")
    connection.close()

    window = await stage.open(folder=tmp_path)
    banner = window.views.banner
    await ready(window)
    await until(lambda: banner.trouble is not None and banner.trouble.remedy == "repair")
    await click(banner.remedy_button)
    assert banner.trouble.remedy == "repair-incomplete"
    assert not (tmp_path / "chats-damaged.db").exists()
    await click(banner.remedy_button)
    assert (tmp_path / "chats-damaged.db").exists()
    assert {each.id for each in window.controller.chats.listed()} == {"c0", "c2"}


@pytest.mark.sweep
async def test_a_chat_is_shown_and_repaired_with_what_can_be_read_of_it(stage: Stage, tmp_path: Path) -> None:
    filled(tmp_path, *(chat_of(number, 3) for number in range(3)))
    connection = sqlite3.connect(tmp_path / "chats.db", isolation_level=None)
    connection.execute("UPDATE turns SET sum = 0 WHERE chat = 'c1' AND place = 1")
    connection.execute("UPDATE parts SET sum = 0 WHERE chat = 'c1' AND turn = 1")
    connection.close()

    window = await stage.open(folder=tmp_path)
    banner = window.views.banner
    await ready(window)
    window.controller.chat.select("c1")
    await until(lambda: banner.trouble is not None and banner.trouble.remedy == "repair")
    assert "3 of 3 chats can be read, 1 of them only in part." in banner.trouble.text
    first, missing, third = window.controller.chats.get("c1").turns
    assert (first, third) == chat_of(1, 3).turns[::2]
    assert "Question 2 and its answer could not be read" in missing.user.content
    await click(banner.remedy_button)
    assert "1 of them only in part" in banner.trouble.text
    assert window.controller.chats.get("c1").turns == (first, missing, third)
    window = await stage.open(folder=tmp_path)
    assert window.views.banner.isHidden()
    assert window.controller.chats.get("c1").turns == (first, missing, third)


async def test_missing_chats_are_restored_from_a_backup(stage: Stage, tmp_path: Path) -> None:
    filled(tmp_path, *(chat_of(number) for number in range(3)))
    Backups(tmp_path / "chats.db").make()
    (tmp_path / "chats.db").unlink()

    window = await stage.open(folder=tmp_path)
    banner = window.views.banner
    assert banner.trouble.title == "Some of your chats are missing."
    assert window.controller.chats.listed() == ()
    await click(banner.remedy_button)
    assert {each.id for each in window.controller.chats.listed()} == {"c0", "c1", "c2"}
    window = await stage.open(folder=tmp_path)
    assert window.views.banner.isHidden()
    assert len(window.controller.chats.listed()) == 3


@pytest.mark.sweep
async def test_closing_with_unsaved_chats_or_settings_is_told_and_can_be_cancelled(
    stage: Stage, tmp_path: Path
) -> None:
    filled(tmp_path, chat_of(1))

    with full_disk():
        window = await stage.ready(folder=tmp_path)
        await asked(window, "write 3")
        question = await question_on_closing(window)
        assert question.text() == "One change is not saved."
        assert "The disk is full." in question.informativeText()
        assert "lost" in question.informativeText()
        await click(question.cancel)
        await asked(window, "write 4")
        assert window.isVisible()
        question = await question_on_closing(window)
        await click(question.answers["discard"])
        await window.closed()
        await stage.close()
    window = await stage.open(folder=tmp_path)
    assert window.views.banner.isHidden()
    assert [each.id for each in window.controller.chats.listed()] == ["c1"]

    banner, preferences = window.views.banner, window.controller.home.preferences
    with full_disk():
        window.app_settings.set("look.token_colors", "off")
        await until(lambda: bool(banner.trouble))
        assert banner.trouble.title.startswith("Your settings could not be saved.")
        assert "Errno" not in banner.trouble.text
    preferences.flush()
    await until(banner.isHidden)


@pytest.mark.sweep
async def test_unsaved_chats_are_saved_elsewhere_and_restored_by_the_next_start(
    stage: Stage, tmp_path: Path
) -> None:
    home, file = tmp_path / "home", tmp_path / "elsewhere.json"
    filled(home, chat_of(1))
    other = sqlite3.connect(home / "chats.db", isolation_level=None)
    kept: list[Conversation] = []

    window = await stage.open(folder=home)
    assert window.controller.home.library.flush()
    other.execute("BEGIN IMMEDIATE")  # a program that holds the database
    await asked(window, "write 3")
    kept.append(window.controller.chats.open)
    question = await question_on_closing(window)
    assert "next start" in question.informativeText()
    await click(question.answers["elsewhere"])
    await choose_in_sheet(window, file)
    await window.closed()
    await stage.close()
    other.close()
    assert [chat.turns for chat in from_json(file.read_bytes())] == [kept[0].turns]
    window = await stage.open(folder=home)
    assert "restored" in window.views.banner.trouble.title
    assert window.controller.chats.get(kept[0].id).turns == kept[0].turns
