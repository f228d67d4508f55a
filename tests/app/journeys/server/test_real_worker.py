"""Chat and local server over a real worker with a tiny model: they wait for each other, nothing is mixed."""

from __future__ import annotations

import base64
import os
import signal
from pathlib import Path

from app.chat.image_tile import ImageTile
from app.chat.user_message import UserMessage
from app.features.images.viewer import ImageViewer
from app.features.server import strings
from app.session.turn.link_state import Phase
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import Stage, answering, last, ready, until
from tests.core.seeing import image, write_seeing_model

SETTINGS = assign_all(Settings(), [("sampling.max_tokens", 400), ("prefill.mode", "off")])


async def test_a_client_asks_while_the_chat_answers_and_the_worker_is_killed(
    stage: Stage, toy_folder: Path
) -> None:
    window = await stage.ready(command=worker_command(), model=str(toy_folder))
    base = await switch_on(window)
    alone = await Asked(base, "the harbour", max_tokens=24, temperature=0).whole()
    assert alone.is_whole
    assert alone.text
    window.views.inspector.set_settings(SETTINGS)
    await answering(window, "Tell a long story.")
    beside = Asked(base, "the harbour", max_tokens=24, temperature=0)
    await until(lambda: len(window.controller.sharing.answers.sent) == 1)
    await beside.whole()
    assert last(window).over
    assert beside.text == alone.text
    await ready(window)
    running = Asked(base, "go on", max_tokens=480, drafter="off", temperature=0)
    await until(lambda: bool(running.text))
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await running.whole()
    assert running.error == "worker_failed"
    again = await Asked(base, "the harbour", max_tokens=24, temperature=0).whole()
    assert again.text == alone.text
    assert window.worker.pid != pid
    assert window.controller.link.phase is Phase.READY


async def test_images_of_a_request_are_seen_while_it_runs_and_named_afterwards(
    stage: Stage, tmp_path: Path
) -> None:
    write_seeing_model(tmp_path / "eyes")
    window = await stage.ready(command=worker_command(), model=str(tmp_path / "eyes"))
    base = await switch_on(window)
    page = window.windows.show("server")
    drawn = image(tmp_path, 3, 64, 48)
    url = f"data:image/png;base64,{base64.b64encode(Path(drawn.path).read_bytes()).decode()}"
    content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    fields = {"messages": [{"role": "user", "content": content}], "temperature": 0, "logit_bias": {"0": -100}}
    running = Asked(base, "", tokens=1900, drafter="off", **fields)

    def tiles() -> list[ImageTile]:
        return page.transcript.findChildren(ImageTile)

    await until(lambda: bool(tiles()), what="no picture")
    (tile,) = tiles()
    await until(lambda: tile.shown is not None)
    assert tile.image.hash == drawn.hash
    tile.click()
    viewer = window.windows.find("images")
    assert isinstance(viewer, ImageViewer)
    await until(lambda: viewer.has_preview, what="the image is not read")
    assert viewer.image == tile.image
    assert viewer.save_button.isEnabled()
    assert page.list.rows[0].level == "live"
    answer = page.transcript.answer(page.list.selected)
    await until(lambda: len(answer.body.table) > 5, what="the answer does not go on")
    await running.leave()
    await until(lambda: page.list.rows[0].over)
    folder = Path(tile.image.path).parent
    await until(lambda: not folder.exists(), what="the server kept the image")
    tile.click()
    await until(lambda: viewer.titles.says.startswith("Enlarged thumbnail."))
    assert not viewer.save_button.isEnabled()
    # Another request, and back: the file is gone, and the words say so.
    await Asked(base, "hello", tokens=2).whole()
    await until(lambda: len(page.list.rows) == 2)
    first, second = page.list.rows[1].id, page.list.rows[0].id
    for request in (second, first):
        page.list.select(request)
    await until(lambda: not tiles())
    (message,) = page.transcript.findChildren(UserMessage)
    line = strings.image("image-1.png", 64, 48, "")
    assert message.body.accessibleDescription() == f"What is it?\n\n{line}"
