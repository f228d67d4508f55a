"""The worker is told which chat is open, for its saved caches; erased chats are erased there; Settings."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow
from PySide6.QtWidgets import QLabel

from app.shell.window import MainWindow
from core.events import (
    Attachment,
    EraseChats,
    Generate,
    ListSavedChats,
    Message,
    OpenChat,
    ReadAhead,
    ReadAheadProgress,
    SavedChatsListed,
)
from core.prefill.forecast import ReadingForecast
from tests.app.stage import Stage, click, last, ready, sent, set_value, until


async def ask(window: MainWindow, words: str = "write 3") -> str:
    window.controller.asking.submit(Message("user", words))
    await until(lambda: last(window).status == "finished")
    return window.controller.chats.open.id


async def test_the_worker_knows_which_chat_is_open_and_which_are_erased(stage: Stage) -> None:
    window = await stage.open()
    controller, saved = window.controller, window.controller.saved_chats
    commands = sent(window, OpenChat, EraseChats, ListSavedChats, Generate)
    saved.erase("a")
    saved.erase("b")
    assert commands == []
    assert controller.home.preferences.now.erase_chats == ("a", "b")
    await ready(window)
    # A new chat has nothing to load; what was erased without a worker is erased by the first.
    assert commands == [EraseChats(("a", "b"))]
    del commands[:]
    first = await ask(window)
    generate, opened = commands
    assert generate.chat == first
    assert opened == OpenChat(first, controller.chat.settings.of(controller.chats.open).prefill)
    del commands[:]
    controller.chat.start()
    assert [each.chat for each in commands if isinstance(each, OpenChat)] == [""]
    second = await ask(window)
    controller.chat.select(first)
    chats = [each.chat for each in commands if isinstance(each, OpenChat)]
    assert chats == ["", second, first]
    # A new worker knows nothing.
    del commands[:]
    controller.restart()
    await until(lambda: bool(commands))
    assert [each.chat for each in commands if isinstance(each, OpenChat)] == [first]
    await ready(window)
    controller.chats.purge(second)
    assert commands[-1] == EraseChats((second,))
    assert controller.home.preferences.now.erase_chats == (second,)
    await until(lambda: not controller.home.preferences.now.erase_chats)


async def test_a_chat_that_is_not_saved_is_not_named_and_settings_clear_what_is(window: MainWindow) -> None:
    commands = sent(window, OpenChat, EraseChats, ListSavedChats, Generate)
    set_value(window, "prefill.save", False)
    await ask(window)
    assert not any(isinstance(each, OpenChat) for each in commands)
    set_value(window, "prefill.save", True)
    window.app_settings.set("allowed.save", False)
    await ask(window)
    assert not any(isinstance(each, OpenChat) for each in commands)
    asked = commands[-1]
    assert not asked.settings.prefill.save

    window.app_settings.set("allowed.save", True)
    del commands[:]
    settings = window.windows.show("settings")
    assert commands == [ListSavedChats()]
    assert not settings.clear_button.isEnabled()
    saved = window.controller.saved_chats

    def says(words: str) -> bool:
        return any(words in each.text() for each in settings.findChildren(QLabel))

    saved.on_listed(SavedChatsListed(2, 412 << 20, "Not saved: the disk is almost full"))
    assert says("2 chats, 412 MB. Not saved: the disk is almost full.")
    window.app_settings.set("allowed.save", False)
    assert says("no more caches are saved")
    assert says("2 chats, 412 MB")
    window.app_settings.set("allowed.save", True)
    await click(settings.clear_button)
    assert commands[-1] == EraseChats(everything=True)
    saved.on_listed(SavedChatsListed(0, 0))
    assert says("Nothing is saved.")
    assert not settings.clear_button.isEnabled()


def attached(commands: list[ReadAhead]) -> tuple[Attachment, ...]:
    """The documents of the last message that the worker was told to read."""
    return commands[-1].question.messages[-1].attachments


async def test_the_worker_reads_while_the_question_is_typed_and_again_for_another_model(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = sent(window, ReadAhead, Generate)
    composer, saved = window.views.composer, window.controller.saved_chats
    log = Attachment("log.txt", "The harbour is called Marrow Bay. " * 40)
    composer.chips.add(log)
    await until(lambda: bool(commands))
    composer.chips.clear()
    await until(lambda: attached(commands) == ())  # one that is removed is not read
    del commands[:]
    composer.chips.add(log)
    await until(lambda: bool(commands) and bool(attached(commands)))
    question = commands[-1].question
    assert [each.name for each in question.messages[-1].attachments] == ["log.txt"]
    assert question.messages[-1].content == ""
    forecasts: list[ReadingForecast] = []
    monkeypatch.setattr(window.views.inspector, "show_estimate", lambda will, exact: forecasts.append(will))
    (chip,) = composer.chips.chips
    for done, shown in ((40, "0%"), (140, "50%"), (240, "")):
        saved.on_read_ahead(ReadAheadProgress(question.chat, done, 240))
        assert (f"{shown} read before you ask" in chip.toolTip()) == bool(shown)
    assert chip.note.endswith(", read")
    assert forecasts[-1].new_tokens == 0 < forecasts[-2].new_tokens
    composer.edit.set_text("What is it called?")
    saved.read_ahead()
    assert len(commands) == 1, "the words of a short question change nothing"
    window.controller.asking.submit(composer.message())
    await until(lambda: last(window).status == "finished")
    generate = next(each for each in commands if isinstance(each, Generate))
    assert (generate.chat, generate.settings) == (question.chat, question.settings)
    assert generate.messages[-1].attachments[0].text == question.messages[-1].attachments[0].text

    window.controller.chat.start()
    del commands[:]
    edit = window.views.composer.edit
    edit.set_text("🌊 The harbour is called Marrow Bay. " * 80)
    cursor = edit.textCursor()
    cursor.setPosition(cursor.position() - 10)
    edit.setTextCursor(cursor)
    await until(lambda: bool(commands) and bool(commands[-1].question.messages[-1].content))
    content = commands[-1].question.messages[-1].content
    assert content == edit.text[: len(content)] == edit.text[:-10]

    composer.clear()
    window.controller.chat.start()
    del commands[:]
    window.views.composer.chips.add(Attachment("log.txt", "The harbour is called Marrow Bay. " * 40))
    await until(lambda: bool(commands) and bool(attached(commands)))
    del commands[:]
    window.controller.restart()
    await ready(window)
    await until(lambda: bool(commands) and bool(attached(commands)))


async def test_an_edited_message_is_read_in_its_place_and_not_saved_as_the_chat(window: MainWindow) -> None:
    await ask(window)
    chat = await ask(window, "write 4")
    first, second = window.controller.chats.open.turns
    commands = sent(window, ReadAhead, Generate)
    asking, composer = window.controller.asking, window.views.composer
    for turn, before in ((first, 0), (second, 2)):
        asking.edit(turn.id)
        composer.chips.add(Attachment("log.txt", "The harbour is called Marrow Bay. " * 40))
        await until(lambda: bool(commands) and bool(attached(commands)))
        question = commands[-1].question
        assert (question.chat, len(question.messages)) == ("", before + 1)
        asking.cancel_edit()
        await until(lambda: not attached(commands))
        assert (commands[-1].question.chat, len(commands[-1].question.messages)) == (chat, 5)
    asking.edit(second.id)
    composer.chips.add(question.messages[-1].attachments[0])
    asking.submit(composer.message())
    await until(lambda: last(window).status == "finished")
    assert commands[-1].messages[:-1] == question.messages[:-1]
    assert commands[-1].messages[-1].attachments[0].text == question.messages[-1].attachments[0].text


@pytest.mark.sweep
async def test_settings_count_the_images_of_all_chats_and_their_bytes(stage: Stage, tmp_path: Path) -> None:
    window = await stage.open(folder=tmp_path)
    images = window.controller.home.library.images

    def said() -> str:
        """What the window says each time it is opened."""
        page = window.windows.show("settings")
        (text,) = (each.text() for each in page.findChildren(QLabel) if each.text().startswith("Images of"))
        page.close()
        return str(text)

    assert said().endswith("None yet.")
    kept = []
    for shade in range(2):
        stream = BytesIO()
        Pillow.effect_noise((900, 700), 60 + shade).save(stream, "PNG")
        kept.append(images.keep(stream.getvalue(), "noise.png").hash)
        size_bytes = sum(path.stat().st_size for path in images.folder.iterdir())
        size = f"{size_bytes / 2**20:,.0f} MB" if shade else f"{math.ceil(size_bytes / 2**10):,} KB"
        assert said().endswith(f" {'2 images' if shade else '1 image'}, {size}.")
    images.saved(kept)
    images.erase(kept)
    assert said().endswith("None yet.")
