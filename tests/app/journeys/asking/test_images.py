"""Images in a chat: attached, refused, sent, viewed, edited and deleted. None is left out unnoticed."""

from __future__ import annotations

import shutil
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.chat import strings
from app.chat.image_chip import ImageChip
from app.chat.user_message import UserMessage
from app.features.images.viewer import ImageViewer
from app.session.chats.conversation import Answer, Turn
from app.shell.window import MainWindow
from core.events import Generate, Image, Message, Token
from tests.app.stage import (
    Stage,
    asked,
    choose_in_sheet,
    click,
    drop,
    last,
    outside_of_tasks,
    press,
    ready,
    sent,
    until,
)

EYES = "hub/eyes"


def picture(path: Path, size: tuple[int, int] = (320, 160), colour: str = "navy") -> Path:
    Pillow.new("RGB", size, colour).save(path)
    return path


def pasted(data: bytes, kind: str = "image/png", **more: str) -> QMimeData:
    mime = QMimeData()
    mime.setData(kind, data)
    for name, text in more.items():
        mime.setData(f"text/{name}", text.encode())
    return mime


def png(colour: str) -> bytes:
    stream = BytesIO()
    Pillow.new("RGB", (64, 96), colour).save(stream, "PNG")
    return stream.getvalue()


def chips(window: MainWindow) -> tuple[ImageChip, ...]:
    return window.views.composer.chips.image_chips


async def read(window: MainWindow, count: int) -> None:
    """Wait until so many images are attached or refused."""
    composer = window.views.composer
    await until(lambda: not composer.chips.files and len(chips(window)) == count, what="images are read")


def questions(window: MainWindow) -> list[UserMessage]:
    found = window.views.transcript.widget().findChildren(UserMessage)
    return sorted((each for each in found if each.isVisible()), key=lambda each: each.y())


def names(window: MainWindow) -> list[list[str]]:
    return [[tile.accessibleName() for tile in each.tiles] for each in questions(window)]


@pytest.mark.sweep
async def test_images_are_pasted_dropped_counted_ordered_and_sent_or_refused(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(model=EYES)
    composer, field = window.views.composer, window.views.composer.edit
    field.insertFromMimeData(pasted(png("red")))
    # Copied words have a picture beside them, a browser's image its address.
    field.insertFromMimeData(pasted(png("teal"), plain="words"))
    field.insertFromMimeData(pasted(png("green"), plain="https://example.org/a.png"))
    assert composer.text == "words"
    composer.clear()
    field.insertFromMimeData(pasted(png("red")))
    field.insertFromMimeData(pasted(png("green"), plain="https://example.org/a.png"))
    await read(window, 2)
    assert [chip.name for chip in chips(window)] == ["Pasted image.png", "Pasted image 2.png"]
    drawing = tmp_path / "plan.svg"
    drawing.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    damaged = tmp_path / "torn.png"
    damaged.write_bytes(png("red")[:60])
    drop(composer, picture(tmp_path / "receipt.png"), drawing, damaged)
    await read(window, 5)
    *_, receipt, svg, torn = chips(window)
    await until(lambda: "about 50 tokens, scaled to 320 × 160" in receipt.note)
    assert composer.pill.use.image_tokens == 2 * 2 * 3 + 50
    assert "Attached images: 62 tokens" in composer.pill.toolTip()
    # What cannot be used stays, says why, and nothing is sent without it unnoticed.
    assert "“plan.svg” is an SVG drawing" in svg.note
    assert "“torn.png” is damaged" in torn.note
    assert svg.note in composer.notice.text
    assert torn.note in composer.notice.text
    composer.set_text("write 2")
    assert not composer.send_button.isEnabled()
    commands = sent(window, Generate)
    composer.submit()
    assert commands == []
    (button,) = composer.notice.buttons
    assert button.text() == "Remove Images"
    await click(button)
    assert composer.notice.isHidden()
    receipt.setFocus(Qt.FocusReason.TabFocusReason)
    await press(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    await press(window, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert receipt.hasFocus()
    assert [image.name for image in composer.images] == [
        "receipt.png", "Pasted image.png", "Pasted image 2.png"
    ]  # fmt: skip
    await press(window, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    await press(window, Qt.Key.Key_Delete)
    assert composer.images[0].name == "Pasted image.png"
    composer.submit()
    await until(lambda: bool(commands))
    await ready(window)
    (request,) = commands
    assert [Path(image.path).read_bytes() for image in request.messages[-1].images] == [
        png("red"), png("green")
    ]  # fmt: skip
    assert composer.is_empty
    assert names(window) == [["Image 1 of 2, Pasted image.png", "Image 2 of 2, Pasted image 2.png"]]


async def test_a_model_without_eyes_says_so_and_offers_one_that_sees(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", "8")
    monkeypatch.setenv("FAKE_EYES", "1")
    window = await stage.ready()
    composer, notice = window.views.composer, window.views.notice_bar
    composer.set_text("write 2")
    composer.attach_files([picture(tmp_path / "a.png")])
    await read(window, 1)
    (chip,) = chips(window)
    assert chip.note == strings.NOT_SEEN
    why = "Fake 1M cannot see the image: it is a text-only model."
    assert composer.notice.text == why
    assert why in chip.toolTip()
    commands = sent(window, Generate)
    assert not composer.send_button.isEnabled()
    composer.submit()
    window.controller.asking.submit(composer.message())
    assert notice.text == why
    offers = ["Load Fake Eyes", "Remove Image"]
    await until(lambda: [each.text() for each in composer.notice.buttons] == offers)
    await click(composer.notice.buttons[0])
    await until(lambda: composer.notice.isHidden(), what="the model that sees is loaded")
    await until(lambda: composer.send_button.isEnabled())
    assert commands == []
    composer.submit()
    await until(lambda: bool(commands))
    await ready(window)
    # A model without eyes goes without the images that were sent, and says so before and after.
    window.controller.models.load("starter")
    left_out = "The image of this chat is left out of new answers, because Fake 1M cannot see images."
    await until(lambda: notice.text == left_out)
    assert notice.icon.name == "warn"
    await asked(window, "write 2 more")
    finished = last(window).finished
    assert finished
    assert [change.setting for change in finished.effective.changes] == ["images"]
    assert len(commands) == 2
    first = window.controller.chats.open.turns[0].id
    window.controller.asking.regenerate(first)
    assert notice.text == why
    assert len(commands) == 2


async def test_a_model_that_sees_is_downloaded_if_none_is_installed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SUGGESTED", "8")
    window = await stage.ready()
    composer = window.views.composer
    composer.attach_files([picture(tmp_path / "a.png")])
    await read(window, 1)
    wanted = ["Download Three 3B (3.0 GB)", "Remove Image"]
    await until(lambda: [each.text() for each in composer.notice.buttons] == wanted)
    await click(composer.notice.buttons[0])
    await until(lambda: "Three 3B is being downloaded: 0%." in composer.notice.text)
    await click(composer.notice.buttons[0])
    assert composer.is_empty


async def test_a_queued_image_waits_for_a_model_that_sees(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(model=EYES)
    composer = window.views.composer
    composer.attach_files([picture(tmp_path / "a.png")])
    await read(window, 1)
    await asked(window, "write 2")
    (question,) = window.controller.chats.open.turns
    commands = sent(window, Generate)
    window.controller.models.load("starter")
    window.controller.asking.queue.add(question.user)  # while it loads
    await until(lambda: strings.HELD_UNSEEN in window.views.queue_list.text, what="it is held")
    window.controller.asking.send_queued()
    assert "cannot see" in window.views.notice_bar.text
    assert commands == []


@pytest.mark.sweep
async def test_images_are_followed_up_reopened_found_viewed_edited_and_deleted(
    stage: Stage, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    window = await stage.ready(model=EYES, folder=home)
    composer = window.views.composer
    composer.attach_files(
        [picture(tmp_path / "receipt.png"), picture(tmp_path / "map.png", (90, 300), "olive")]
    )
    await read(window, 2)
    await asked(window, "write 2")
    commands = sent(window, Generate)
    await asked(window, "write 3 about the first image")
    (request,) = commands
    assert [image.name for image in request.messages[0].images] == ["receipt.png", "map.png"]
    assert request.messages[-1].images == ()

    window = await stage.ready(model=EYES, folder=home)
    composer, controller = window.views.composer, window.controller
    await until(lambda: names(window) == [["Image 1 of 2, receipt.png", "Image 2 of 2, map.png"], []])
    tiles = questions(window)[0].tiles
    await until(lambda: all(tile.shown for tile in tiles), what="the thumbnails are decoded")
    assert [tile.shown.size() for tile in tiles] == [tile.size() for tile in tiles]
    unmarked = [tile.grab().toImage() for tile in tiles]
    finder = window.views.transcript.finder
    finder.open()
    finder.bar.field.setText("MAP.P")
    await until(lambda: finder.bar.count.text().startswith("1 of 1"))
    assert [tile.grab().toImage() == before for tile, before in zip(tiles, unmarked)] == [True, False]
    finder.close()

    tiles[0].setFocus(Qt.FocusReason.TabFocusReason)
    await press(window, Qt.Key.Key_Space)
    viewer = window.windows.find("images")
    assert isinstance(viewer, ImageViewer)
    assert viewer.accessibleName() == "Image 1 of 2, receipt.png"
    await until(lambda: viewer.has_preview, what="the preview is read")
    await press(viewer, Qt.Key.Key_Right)
    assert viewer.accessibleName() == "Image 2 of 2, map.png"
    fitting = viewer.view.factor
    await press(viewer, Qt.Key.Key_Plus)
    assert viewer.view.factor > fitting
    await press(viewer, Qt.Key.Key_0)
    assert viewer.view.factor == fitting
    viewer.copy_button.click()
    clipboard = QGuiApplication.clipboard()
    await until(lambda: not clipboard.image().isNull(), what="the image is copied")
    assert (clipboard.image().width(), clipboard.image().height()) == (90, 300)
    viewer.save_button.click()
    await choose_in_sheet(viewer, tmp_path / "saved.png")
    assert (tmp_path / "saved.png").read_bytes() == (tmp_path / "map.png").read_bytes()
    await press(viewer, Qt.Key.Key_Escape)
    assert not viewer.isVisible()
    data = controller.images.files.drag_data(tiles[1].image)
    assert data
    (dragged,) = (Path(url.toLocalFile()) for url in data.urls())
    assert dragged.name == "map.png"
    assert dragged.read_bytes() == (tmp_path / "map.png").read_bytes()

    chat = controller.chats.open
    controller.asking.edit(chat.turns[0].id)
    assert [chip.name for chip in chips(window)] == ["receipt.png", "map.png"]
    composer.set_text("write 4")
    await click(chips(window)[0].remove_button)
    composer.attach_files([picture(tmp_path / "third.png", (30, 30), "pink")])
    await read(window, 2)
    composer.submit()
    await ready(window)
    await until(lambda: names(window) == [["Image 1 of 2, map.png", "Image 2 of 2, third.png"]])
    turn = controller.chats.open.turns[0].id
    controller.asking.edits.delete_message(turn)
    assert names(window) == []
    await click(window.views.notice_bar.action_button)
    assert names(window) == [["Image 1 of 2, map.png", "Image 2 of 2, third.png"]]

    image: Image = controller.chats.open.turns[0].user.images[0]
    window.windows.close_all()
    Path(image.path).unlink()
    window = await stage.ready(model=EYES, folder=home)
    await until(lambda: bool(questions(window)))
    missing, there = questions(window)[0].tiles
    await until(lambda: there.shown is not None)
    assert (missing.is_missing, there.is_missing) == (True, False)
    assert missing.accessibleDescription() == strings.IMAGE_MISSING
    assert not dragged.exists()


@pytest.mark.sweep
async def test_every_way_to_ask_sends_all_images_of_the_chat(stage: Stage, tmp_path: Path) -> None:
    home = tmp_path / "home"
    window = await stage.ready(model=EYES, folder=home)
    composer, asking, chats = window.views.composer, window.controller.asking, window.controller.chats
    commands = sent(window, Generate)

    async def attach(name: str, colour: str) -> None:
        before = len(chips(window))
        composer.attach_files([picture(tmp_path / name, colour=colour)])
        await read(window, before + 1)

    async def check(way: str, count: int) -> None:
        await until(lambda: len(commands) == count, what=way)
        await ready(window)
        asked_with = [[each.hash for each in m.images] for m in commands[-1].messages if m.role == "user"]
        turns = chats.open.turns
        assert asked_with == [[each.hash for each in turn.user.images] for turn in turns], way
        assert any(asked_with), way

    await attach("a.png", "red")
    composer.set_text("write 100000 slowly")
    composer.submit()
    await until(lambda: len(last(window).tokens) > 3)
    await attach("b.png", "green")
    await attach("c.png", "blue")
    composer.set_text("write 3")
    composer.submit()  # waits
    assert [len(each.message.images) for each in chats.open.queued] == [2]
    asking.readiness.stop_running()
    await ready(window)
    asking.send_queued()
    await check("a queued message", 2)
    assert [len(turn.user.images) for turn in chats.open.turns] == [1, 2]
    asking.regenerate()
    await check("regenerate", 3)
    asking.edit()
    composer.set_text("write 4")
    composer.submit()
    await check("an edited message", 4)
    composer.set_text("write 30 slowly")
    composer.submit()
    await until(lambda: len(last(window).tokens) > 3)
    asking.readiness.stop_running()
    await ready(window)
    asking.continue_answer()
    await check("a continued answer", 6)
    asking.regenerate(chats.open.turns[1].id)
    await check("an earlier question in a new chat", 7)
    # A draft stays with its chat, over a restart too.
    await attach("d.png", "pink")
    drafted, chat_id = composer.images, chats.open.id
    window.controller.chat.start()
    assert composer.images == ()
    window.controller.chat.select(chat_id)
    assert composer.images == drafted
    window.windows.close_all()
    window = await stage.ready(model=EYES, folder=home)
    composer, chats, commands = window.views.composer, window.controller.chats, sent(window, Generate)
    await until(lambda: composer.images == drafted, what="the draft is back")
    composer.set_text("write 2")
    composer.submit()
    await check("after a restart", 1)
    assert [each.hash for each in chats.open.turns[-1].user.images] == [drafted[0].hash]


async def test_a_chat_of_many_images_opens_with_those_that_are_in_view(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    window = await stage.ready(model=EYES, folder=home)
    archive, chats = window.controller.home.library.images, window.controller.chats
    one = archive.keep(picture(tmp_path / "a.png"), "a.png")
    images = [replace(one, hash=f"{number:064x}", path="", name=f"{number}.png") for number in range(1, 21)]
    for image in images:
        for ending in ("", ".png"):
            shutil.copyfile(f"{archive.path(one.hash)}{ending}", f"{archive.path(image.hash)}{ending}")
    answer = Answer((Token("r", 1, "word " * 400, "normal", 1, 0),), "finished")
    turns = tuple(Turn(each.hash, Message("user", "What is it?", images=(each,)), answer) for each in images)
    chats.keep(replace(chats.open, id="many", turns=turns))
    read: list[str] = []
    thumbnail = archive.thumbnail

    def counted(hash: str) -> bytes | None:
        read.append(hash)
        return thumbnail(hash)

    monkeypatch.setattr(archive, "thumbnail", counted)
    opened = chats.open.id
    window.controller.chat.select("many")
    await until(lambda: bool(questions(window)))
    tiles = [tile for each in questions(window) for tile in each.tiles]
    assert tiles
    files = window.controller.images.files
    await until(lambda: not files.is_decoding)
    assert all(tile.shown for tile in tiles)
    assert 0 < len(read) <= 6, "thumbnails of a chat are decoded that nobody sees"
    bar = window.views.transcript.verticalScrollBar()
    for value in (bar.minimum(), bar.maximum()):
        bar.setValue(value)
        await until(lambda: bool(questions(window)) and not files.is_decoding)
    window.controller.chat.select(opened)
    window.controller.chat.select("many")
    await until(lambda: bool(questions(window)) and not files.is_decoding)
    assert len(read) == len(set(read)), "a thumbnail is decoded again"


@pytest.mark.sweep
async def test_no_turn_of_the_event_loop_decodes_two_thumbnails(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = await stage.ready(model=EYES)
    archive, chats = window.controller.home.library.images, window.controller.chats
    images = [archive.keep(picture(tmp_path / f"{n}.png", (64 + n, 64)), f"{n}.png") for n in range(12)]
    turn = Turn("t", Message("user", "What are they?", images=tuple(images)), Answer((), "stopped"))
    chats.keep(replace(chats.open, id="many", turns=(turn,)))
    thumbnail, turns, read = archive.thumbnail, [0], list[int]()

    def counted(hash: str) -> bytes | None:
        read.append(turns[0])
        return thumbnail(hash)

    monkeypatch.setattr(archive, "thumbnail", counted)
    window.controller.chat.select("many")
    (question,) = questions(window)
    heights = [tile.geometry() for tile in question.tiles]
    assert read == [], "the thumbnails are decoded while the chat is opened"
    assert not any(tile.is_missing for tile in question.tiles)

    def run() -> None:
        while turns[0] < 200 and len(read) < len(images):
            turns[0] += 1
            QApplication.processEvents()

    await outside_of_tasks(run)
    assert len(read) == len(set(read)) == len(images)
    assert [tile.geometry() for tile in question.tiles] == heights
    assert all(tile.shown.size() == tile.size() for tile in question.tiles)


@pytest.mark.sweep
async def test_a_pasted_image_is_not_lost_when_the_window_closes_at_once(
    stage: Stage, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    window = await stage.ready(model=EYES, folder=home)
    composer, chat = window.views.composer, window.controller.chat
    await asked(window, "write 2")
    left = window.controller.chats.open.id
    composer.set_text("first")
    composer.edit.insertFromMimeData(pasted(png("red")))
    chat.start()  # while it is read
    composer.set_text("second")
    composer.edit.insertFromMimeData(pasted(png("green")))
    assert len(composer.chips.pasted) == 1
    window = await stage.ready(model=EYES, folder=home)
    composer, chats = window.views.composer, window.controller.chats
    for text, colour in (("second", "green"), ("first", "red")):
        assert composer.text == text
        (image,) = composer.images
        assert Path(image.path).read_bytes() == png(colour)
        window.controller.chat.select(left)
    assert chats.open.id == left


@pytest.mark.sweep
async def test_what_was_being_read_for_a_draft_is_read_again_after_a_restart(
    stage: Stage, tmp_path: Path
) -> None:
    home, folder = tmp_path / "home", tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("words")
    window = await stage.ready(model=EYES, folder=home)
    composer = window.views.composer
    composer.set_text("a draft")
    composer.attach_files([folder, picture(tmp_path / "a.png"), tmp_path / "gone.png"])
    assert len(composer.chips.files) == 3
    window.windows.close_all()
    window = await stage.ready(model=EYES, folder=home)
    composer = window.views.composer
    await read(window, 2)
    assert composer.text == "a draft"
    assert [each.text for each in composer.attachments] == ["words"]
    assert [each.name for each in composer.images] == ["a.png"]
    assert [chip.name for chip in composer.chips.refused] == ["gone.png"]
    # They are in the draft now, and are not read once more; a file that cannot be read stays.
    window.windows.close_all()
    window = await stage.ready(model=EYES, folder=home)
    await read(window, 2)
    assert [each.text for each in window.views.composer.attachments] == ["words"]
    assert len(window.views.composer.images) == 1
