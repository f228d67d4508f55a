"""Pages of PDFs without text in a chat: images where the model sees, named where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from app.chat.intents import OpenAttachment
from app.chat.strings import HELD_PAGES, QUEUED_FOR_PAGES
from app.controllers import strings
from app.features.images.viewer import ImageViewer
from app.panels import strings as panel_strings
from app.shell.window import MainWindow
from core.events import Generate, Image
from tests.app.stage import Stage, click, last, ready, sent, until
from tests.core.documents.scanned import GREEN, Scan, write_scanned

EYES = "hub/eyes"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's pages are smaller than the largest, of which the fake model's context holds one."""
    monkeypatch.setattr("app.controllers.scanned_pages.LARGEST_PX", (833, 417))


PAGES = ["The harbor is old.", *[Scan()] * 9, "The bridge is new.", *[Scan(GREEN)] * 3]


async def attach(window: MainWindow, path: Path) -> None:
    composer = window.views.composer
    composer.attach_files([path])
    await until(lambda: not composer.chips.files, what="the file is read")


def pages(images: tuple[Image, ...]) -> list[int]:
    return [image.page for image in images]


@pytest.mark.sweep
async def test_pages_near_the_question_are_sent_kept_and_not_sent_again(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(model=EYES, folder=tmp_path / "home")
    composer, chats = window.views.composer, window.controller.chats
    path = write_scanned(tmp_path / "scan.pdf", PAGES)
    await attach(window, path)
    assert len(composer.chips.chips) == 1
    commands = sent(window, Generate)
    composer.set_text("write 20 words, bridge")
    composer.submit()
    # While its pages are drawn, the message waits in the queue, where nothing typed is lost.
    assert composer.is_empty
    assert [each.message.content for each in chats.open.queued] == ["write 20 words, bridge"]
    assert window.views.notice_bar.text == strings.DRAWING_PAGES
    assert window.views.queue_list.text == QUEUED_FOR_PAGES
    composer.set_text("typed meanwhile")
    await until(lambda: bool(commands), what="the message is sent")
    await ready(window)
    question = commands[0].messages[-1]
    assert pages(question.images) == [6, 7, 8, 9, 10, 12, 13, 14]
    assert [image.name for image in question.images][:2] == ["scan.pdf, page 6", "scan.pdf, page 7"]
    assert all(Path(image.path).is_file() for image in question.images)
    assert not chats.open.queued
    assert composer.text == "typed meanwhile"
    assert window.views.notice_bar.text != strings.DRAWING_PAGES
    # A follow-up that names nothing adds none; one about other pages adds those.
    composer.set_text("write 20")
    composer.submit()
    await until(lambda: len(commands) == 2)
    await ready(window)
    assert pages(commands[1].messages[-1].images) == []
    assert commands[1].messages[0] == question
    composer.set_text("write 20 about page 3")
    composer.submit()
    await until(lambda: len(commands) == 3, what="the follow-up is sent")
    await ready(window)
    added = pages(commands[2].messages[-1].images)
    assert 3 in added
    assert not set(added) & {6, 7, 8, 9, 10, 12, 13, 14}
    # The Document tab shows which pages the model got, for each answer those until then.
    window.controller.asking.on_intent(OpenAttachment(chats.open.turns[0].id, 0))
    strip = window.views.document.pages
    all_pages = sorted({6, 7, 8, 9, 10, 12, 13, 14, *added})
    assert strip.isVisible()
    assert [tile.image.page for tile in strip.tiles] == all_pages
    assert strip.label.text() == panel_strings.pages_seen(all_pages, 12)
    await until(lambda: all(tile.shown for tile in strip.tiles))
    window.controller.chat.documents.select_answer(chats.open.turns[0].id)
    assert strip.label.text() == "Pages 6 to 10, 12 to 14 read as images, of 12 without text"
    strip.tiles[1].click()
    viewer = window.windows.find("images")
    assert isinstance(viewer, ImageViewer)
    assert viewer.accessibleName() == "Image 2 of 8, scan.pdf, page 7"
    await until(lambda: viewer.has_preview)
    # The chat has its images when it is opened again, without the file.
    path.unlink()
    window = await stage.ready(model=EYES, folder=tmp_path / "home")
    stored = window.controller.chats.open
    assert pages(stored.turns[0].user.images) == [6, 7, 8, 9, 10, 12, 13, 14]
    assert all(Path(image.path).is_file() for turn in stored.turns for image in turn.user.images)


@pytest.mark.sweep
async def test_a_question_answered_again_or_edited_has_the_pages_that_are_near_then(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(model=EYES)
    composer = window.views.composer
    await attach(window, write_scanned(tmp_path / "scan.pdf", PAGES))
    commands = sent(window, Generate)
    composer.set_text("write 20 words, bridge")
    composer.submit()
    await until(lambda: bool(commands), what="the message is sent")
    await ready(window)
    first = commands[0].messages[-1].images
    window.controller.asking.regenerate()
    await until(lambda: len(commands) == 2)
    await ready(window)
    assert commands[1].messages[-1].images == first
    # The composer shows what the person attached, and no pages.
    window.controller.asking.edit()
    assert composer.images == ()
    composer.set_text("write 20 about page 2")
    composer.submit()
    await until(lambda: len(commands) == 3, what="the edited message is sent")
    await ready(window)
    assert 2 in pages(commands[2].messages[-1].images)
    assert commands[2].messages[-1].content == "write 20 about page 2"


async def test_a_file_of_scans_alone_is_refused_where_the_model_does_not_see(
    stage: Stage, tmp_path: Path
) -> None:
    path = write_scanned(tmp_path / "scan.pdf", [Scan(), Scan()])
    window = await stage.ready()
    composer = window.views.composer
    refused: list[str] = []
    composer.attach_failed.connect(lambda error: refused.append(f"{error.message} {error.hint}"))
    await attach(window, path)
    assert not composer.chips.chips
    assert "this PDF has no text layer" in refused[0]
    assert "a model that sees images" in refused[0]
    # A mixed one is read, and its pages are not images.
    await attach(window, write_scanned(tmp_path / "mixed.pdf", ["The harbor is old.", Scan()]))
    assert len(composer.chips.chips) == 1
    commands = sent(window, Generate)
    composer.set_text("write 2")
    composer.submit()
    await until(lambda: bool(commands))
    await ready(window)
    assert commands[0].messages[-1].images == ()
    assert "[page 2 has no text: it is a picture]" in commands[0].messages[-1].attachments[0].text


@pytest.mark.sweep
async def test_scans_of_the_library_and_of_projects_are_read_as_images(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(model=EYES, folder=tmp_path / "home")
    library, composer = window.controller.library, window.views.composer
    window.windows.show("library")
    for name, scan in (("a.pdf", Scan()), ("b.pdf", Scan(GREEN))):
        library.add_files([write_scanned(tmp_path / name, [scan])])
    await until(lambda: len(library.documents.listed()) == 2, what="two scans of one page are one document")
    # What is kept has its pages in the next run.
    window = await stage.ready(model=EYES, folder=tmp_path / "home")
    library, composer = window.controller.library, window.views.composer
    ids = {each.name: each.id for each in library.documents.listed()}
    project = window.controller.chats.projects.add("Scans")
    window.controller.chats.change_project(replace(project, documents=(ids["b.pdf"],)))
    window.projects.start_chat(project.id)
    library.attach(ids["a.pdf"])
    assert [each.name for each in composer.attachments] == ["b.pdf", "a.pdf"]
    commands = sent(window, Generate)
    composer.set_text("write 2")
    composer.submit()
    await until(lambda: bool(commands), what="the message is sent")
    await ready(window)
    assert [image.name for image in commands[0].messages[-1].images] == ["b.pdf, page 1", "a.pdf, page 1"]
    # A model that does not see is not asked about pictures alone.
    window.controller.chat.start()
    window.controller.models.load("starter")
    await ready(window)
    library.attach(ids["a.pdf"])
    composer.set_text("write 2")
    await until(lambda: composer.notice.text.startswith("Fake 1M cannot read “a.pdf”"))
    assert not composer.send_button.isEnabled()
    composer.chips.remove(composer.chips.chips[0])
    assert composer.notice.isHidden()
    assert composer.send_button.isEnabled()


async def test_a_file_that_is_gone_is_told_and_the_message_is_sent(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(model=EYES)
    composer = window.views.composer
    path = write_scanned(tmp_path / "scan.pdf", [Scan(), Scan()])
    await attach(window, path)
    path.unlink()
    commands = sent(window, Generate)
    composer.set_text("write 2")
    composer.submit()
    await until(lambda: bool(commands), what="the message is sent")
    await ready(window)
    assert commands[0].messages[-1].images == ()
    assert "“scan.pdf” is not a file." in window.views.notice_bar.text
    assert window.views.notice_bar.icon.name == "warn"


@pytest.mark.sweep
async def test_drawing_is_canceled_and_the_message_waits(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(model=EYES)
    composer, notice = window.views.composer, window.views.notice_bar
    await attach(window, write_scanned(tmp_path / "scan.pdf", [Scan(), Scan()]))
    commands = sent(window, Generate)
    composer.set_text("write 2")
    composer.submit()
    await click(notice.action_button)
    (queued,) = window.controller.chats.open.queued
    assert queued.message.content == "write 2"
    assert commands == []
    assert notice.text != strings.DRAWING_PAGES
    assert window.views.queue_list.text == HELD_PAGES
    window.controller.asking.send_queued()
    await until(lambda: bool(commands), what="the message is sent")
    await ready(window)
    assert pages(commands[0].messages[-1].images) == [1, 2]
    assert last(window) is not None


@pytest.mark.sweep
async def test_two_scans_of_as_many_pages_are_two_documents(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(model=EYES)
    composer = window.views.composer
    for name, scan in (("a.pdf", Scan()), ("b.pdf", Scan(GREEN))):
        await attach(window, write_scanned(tmp_path / name, [scan]))
    commands = sent(window, Generate)
    composer.set_text("write 2")
    composer.submit()
    await until(lambda: bool(commands), what="the message is sent")
    await ready(window)
    images = commands[0].messages[-1].images
    assert [image.name for image in images] == ["a.pdf, page 1", "b.pdf, page 1"]
    assert images[0] != replace(images[1], name=images[0].name)
