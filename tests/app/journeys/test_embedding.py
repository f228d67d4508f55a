"""Attached documents are embedded before they are asked about: progress on the chip, stopping, erasing."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

from PySide6.QtCore import Qt

from app.chat.attachment_chip import AttachmentChip
from app.shell.window import MainWindow
from core.events import Attachment, Cancel, EmbedDocument, EraseVectors, Message
from tests.app.stage import Stage, click, last, press, ready, sent, set_value, until

TIDES = Attachment("Tides.md", "\nHigh water at noon, and the water falls slowly.\n" * 40)
ICE = Attachment("Ice.md", "The ice drifts slowly.\n" * 40)
FOG = Attachment("Fog.md", "In fog nobody leaves the harbour.\n" * 40)


def digest(attachment: Attachment) -> str:
    return hashlib.sha256(attachment.text.strip().encode()).hexdigest()


def chip(window: MainWindow) -> AttachmentChip:
    return window.views.composer.chips.chips[-1]


async def indexing(window: MainWindow) -> None:
    await until(lambda: "Indexing" in chip(window).toolTip(), what="it is not embedded")


async def test_a_chip_shows_the_progress_and_deleting_for_good_erases(stage: Stage, tmp_path: Path) -> None:
    window = await stage.open(folder=tmp_path)
    commands = sent(window, EmbedDocument, Cancel, EraseVectors)
    # What is erased while there is no worker is erased by the first.
    documents = window.controller.library.documents
    documents.remove(documents.keep(FOG).id)
    documents.purge_removed()
    assert commands == []
    window.views.composer.attach(TIDES)
    await indexing(window)
    assert len(commands) == 2
    assert EraseVectors((digest(FOG),)) in commands
    assert EmbedDocument("", TIDES.text) in commands
    shown = re.search(r"Indexing, [1-9]?0%", chip(window).toolTip())
    assert shown[0] in chip(window).accessibleDescription()
    assert "Indexing" not in chip(window).note
    with_bar = chip(window).grab().toImage()
    await until(lambda: "Indexing" not in chip(window).toolTip())
    assert chip(window).grab().toImage() != with_bar
    window.views.composer.set_text("What about it?")
    window.views.composer.attach(FOG)
    window.views.composer.attach(Attachment("Copy.md", TIDES.text))
    await until(lambda: len(commands) == 3)
    assert commands[2].text == FOG.text

    await ready(window)
    window.views.composer.clear()
    del commands[:]
    controller = window.controller
    controller.asking.submit(Message("user", "write 3", (TIDES,)))
    await until(lambda: last(window).status == "finished")
    chat_id = controller.chats.open.id
    controller.chat.listing.delete(chat_id)
    assert not any(isinstance(command, EraseVectors) for command in commands)
    controller.chat.listing.erase(chat_id)
    assert commands[-1] == EraseVectors((digest(TIDES),))
    kept = controller.library.documents.keep(FOG)
    controller.library.documents.remove(kept.id)
    controller.library.documents.purge_removed()
    assert commands[-1] == EraseVectors((digest(FOG),))


async def test_removing_stops_and_erases_and_nothing_is_embedded_where_sparse_prefill_is_off(
    window: MainWindow,
) -> None:
    commands = sent(window, EmbedDocument, Cancel, EraseVectors)
    composer = window.views.composer
    composer.attach(TIDES)
    await indexing(window)
    chip(window).setFocus()
    await press(window, Qt.Key.Key_Delete)
    await until(lambda: len(commands) == 3)
    assert set(map(type, commands[1:])) == {Cancel, EraseVectors}
    assert EraseVectors((digest(TIDES),)) in commands
    composer.attach(TIDES)
    await until(lambda: isinstance(commands[-1], EmbedDocument))
    await indexing(window)
    await click(chip(window).remove_button)
    await until(lambda: commands.count(EraseVectors((digest(TIDES),))) == 2)
    del commands[:]
    composer.attach(FOG)
    window.controller.library.keep(FOG)
    await click(chip(window).remove_button)
    composer.attach(TIDES)
    window.controller.asking.submit(Message("user", "write 3", (TIDES,)))
    await until(lambda: last(window).status == "finished")
    assert commands[-1] == EmbedDocument("", TIDES.text)  # it was not stopped
    composer.attach(TIDES)
    await click(chip(window).remove_button)
    assert EraseVectors((digest(FOG),)) not in commands

    window.controller.chat.start()
    del commands[:]
    set_value(window, "prefill.mode", "off")
    composer.attach(ICE)
    composer.set_text("What about it?")
    assert commands == []
    set_value(window, "prefill.mode", "auto")
    await indexing(window)
    set_value(window, "prefill.mode", "off")
    await until(lambda: len(commands) == 2)
    assert "Indexing" not in chip(window).toolTip()
    set_value(window, "prefill.mode", "auto")
    await indexing(window)
    window.controller.restart()
    assert "Indexing" not in chip(window).toolTip()
    await indexing(window)
    assert [type(command) for command in commands] == [EmbedDocument, Cancel] * 2 + [EmbedDocument]


async def test_the_find_bar_and_the_library_find_words_first_and_then_meaning(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(folder=tmp_path)
    text = "\n The boat waits. No ship leaves. Fog is dense. A boat is lost."
    window.controller.asking.submit(Message("user", "write 3", (Attachment("Log.md", text),)))
    await until(lambda: last(window).status == "finished")
    tab = window.views.document
    bar = tab.finder.bar
    tab.finder.open()
    bar.field.setText("ship")
    assert bar.count.text() == "1 of 1"
    await until(lambda: bar.count.text() == "1 of 1 + 2")  # the document was not embedded before
    assert bar.count.accessibleName() == "1 of 1, then 2 similar passages"
    for expected in ("Similar 1 of 2", "Similar 2 of 2", "1 of 1 + 2"):
        await press(bar.field, Qt.Key.Key_Return)
        assert bar.count.text() == expected
    await press(bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert bar.count.text() == "Similar 2 of 2"
    bar.field.setText("ships")
    assert bar.count.text() == "No matches"
    set_value(window, "prefill.mode", "off")
    bar.field.setText("ship")
    await asyncio.sleep(0.8)
    assert bar.count.text() == "1 of 1"

    set_value(window, "prefill.mode", "auto")
    documents = window.controller.library.documents
    documents.keep(Attachment("Boats.md", "\nFog is dense. The boat waits.\n"))
    documents.keep(FOG)
    documents.keep(Attachment("Ships.md", "A ship comes in."))
    await until(lambda: len(documents.search("ship")) == 1)  # written on another thread
    await press(window, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    library = window.windows.find("library")
    library.search.setText("ship")
    await until(lambda: [row.name for row in library.list.rows] == ["Ships.md", "Boats.md"])
    assert library.list.rows[0].passage == "A ship comes in."
    assert library.list.rows[1].passage == "Similar passage: The boat waits."
    library.search.setText("ship comes")
    await until(lambda: [row.name for row in library.list.rows] == ["Ships.md"])
