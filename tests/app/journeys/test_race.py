"""The race in the whole window: recorded by a worker, compared, stopped, and the chat after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.chat.image_tile import ImageTile
from app.features.images.viewer import ImageViewer
from app.features.race import strings
from app.features.race.state import Stage
from app.shell.window import MainWindow
from core.events import Attachment, Message
from core.settings import assign_all
from core.worker.client import worker_command
from tests.app.stage import Stage as Windows
from tests.app.stage import asked, click, kill, press, ready, set_value, until
from tests.core.seeing import image, write_seeing_model

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def opened(window: MainWindow, question: str = "Please write 40 words") -> None:
    await ready(window)
    await press(window, Qt.Key.Key_R, CTRL | SHIFT)
    assert window.race_page.isVisible()
    window.race_page.prompt.question.set_value(question)


async def run(window: MainWindow, timeout_s: float = 10.0) -> None:
    await until(lambda: window.controller.racing.race.stage is Stage.RUN, timeout_s, "never run")


async def test_a_race_is_recorded_compared_stopped_and_left_and_follows_the_chat(window: MainWindow) -> None:
    window.resize(1900, 1000)
    await opened(window)
    page, racing = window.race_page, window.controller.racing
    assert not window.columns.arrangement.inspector_px
    assert not page.prompt.seed.isVisible()
    await click(page.start_button)
    assert racing.race.stage is Stage.PLAIN
    assert page.stop_button.isVisible()
    assert not page.start_button.isVisible()
    await run(window)
    assert racing.race.plain.ids == racing.race.drafted.ids
    assert "All 40 tokens are identical." in page.verdict.text()
    whole = "".join(token.text for token in racing.race.drafted.tokens)
    for side in (page.plain, page.drafted):
        assert side.transcript.answer_text("race") == whole
        assert side.status.text() == strings.FINISHED
        assert side.transcript.answer("race").footer.stats.figures.startswith("50.0 tok/s")
    assert page.headline.text() == "1.00× the plain speed"
    await click(page.done_button)
    assert window.views.composer.isVisible()
    assert window.columns.arrangement.inspector_px
    # A seed is named only where answers are drawn.
    set_value(window, "sampling.temperature", 0.5)
    await asked(window, "write 3")
    racing.show()
    assert page.prompt.seed.isVisible()
    assert page.prompt.seed.text() == "Seed 42"

    racing.close()
    window.controller.chat.start()
    await opened(window, "Please write 400 words slowly")
    page, racing = window.race_page, window.controller.racing
    for leave in (False, True):
        await click(page.start_button)
        await until(lambda: len(racing.race.plain.tokens) > 3)
        assert window.views.composer.state == "later"
        if leave:
            window.controller.chat.start()
            assert not page.isVisible()
        else:
            await click(page.stop_button)
        await ready(window)
        assert racing.race.stage is Stage.IDLE
        assert leave or (page.start_button.isVisible() and page.start_button.isEnabled())
    assert (await asked(window, "Please write 6 words")).status == "finished"

    window.controller.chat.start()
    await asked(window, "Please write 6 words")
    document = Attachment("ledger.txt", "one two three")
    question = Message("user", "Please write 9 words", (document,))
    window.controller.asking.submit(question)
    await ready(window)
    before = window.controller.chats.open
    await press(window, Qt.Key.Key_R, CTRL | SHIFT)
    assert page.prompt.message == question
    await click(page.start_button)
    await run(window)
    assert window.controller.chats.open == before
    assert [message.role for message in racing.race.messages] == ["user", "assistant", "user"]
    assert racing.race.messages[-1] == question
    assert window.views.composer.text == ""
    await click(page.done_button)
    # The fake counts what it was asked with: two questions, two answers, a question.
    assert (await asked(window, "Please write 6 words")).text.startswith("ECHO 5:")

    window.controller.chat.start()
    await opened(window, "Please refuse this")
    await click(page.start_button)
    await until(lambda: bool(window.controller.racing.race.trouble))
    assert "808 more than" in page.verdict.text()
    page.prompt.question.set_value("Please write 400 words slowly")
    await click(page.start_button)
    await until(lambda: len(window.controller.racing.race.plain.tokens) > 3)
    await kill(window)
    assert page.verdict.text() == strings.WORKER_GONE
    assert not page.start_button.isEnabled()
    window.controller.restart()
    await ready(window)
    assert page.start_button.isEnabled()


async def test_a_race_about_an_image_shows_it_or_says_that_the_model_does_not_see(
    stage: Windows, tmp_path: Path
) -> None:
    write_seeing_model(tmp_path / "eyes")
    window = await stage.ready(command=worker_command(), model=str(tmp_path / "eyes"))
    archive, page, racing = window.controller.home.library.images, window.race_page, window.controller.racing
    one = archive.keep(Path(image(tmp_path, 3, 64, 48).path), "plan.png")
    question = Message("user", "", images=(one,))
    values = [("sampling.max_tokens", 12), ("sampling.temperature", 0.0)]
    window.views.inspector.set_settings(assign_all(window.views.inspector.settings, values))
    window.controller.asking.submit(question)
    await ready(window)
    racing.show()
    assert page.start_button.isEnabled()
    assert "plan.png" in page.prompt.context.text()
    page.prompt.most_tokens.set_value(12)
    await click(page.start_button)
    await run(window, 60)
    assert racing.race.messages[-1].images == (one,)
    assert len(racing.race.plain.ids) == 12
    assert racing.race.plain.ids == racing.race.drafted.ids
    (tile, _) = page.findChildren(ImageTile)
    await until(lambda: tile.shown is not None)
    tile.click()
    viewer = window.windows.find("images")
    assert isinstance(viewer, ImageViewer)
    assert viewer.image == one

    window = await stage.ready()
    window.race_page.prompt.show_message(question, 0)
    window.controller.racing.start()
    assert window.controller.racing.race.trouble.startswith("Fake 1M cannot see the image")


@pytest.mark.sweep
async def test_a_real_race(stage: Windows) -> None:
    window = await stage.ready(command=worker_command())
    values = [("sampling.max_tokens", 32), ("gate.mode", "always")]
    window.views.inspector.set_settings(assign_all(window.views.inspector.settings, values))
    window.controller.racing.show()
    page, racing = window.race_page, window.controller.racing
    page.prompt.drafter.set_value("ngram-simple")
    racing.start()
    await run(window, 120)
    race = racing.race
    assert race.plain.finished.effective.drafter == "off"
    assert race.drafted.finished.effective.drafter == "ngram-simple"
    assert {token.origin for token in race.plain.tokens} == {"normal"}
    assert race.drafted.finished.stats.accepted > 0
    assert race.plain.ids == race.drafted.ids
    # Neither profits from the other: both read all of the prompt.
    for side in (race.plain, race.drafted):
        assert side.finished.stats.reused_tokens == 0
    whole = "".join(token.text for token in race.drafted.tokens)
    assert page.drafted.transcript.answer_text("race") == whole
