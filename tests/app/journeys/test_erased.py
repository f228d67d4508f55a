"""One image and one secret through everything that Draftlight writes, and what is left after the deletion."""

from __future__ import annotations

import base64
import tempfile
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow
from PIL.PngImagePlugin import PngInfo

from app.store.copies import Backups
from core.events import Attachment, DocumentEmbedded, EmbedDocument, Message
from core.settings import Settings, assign_all
from core.worker.client import worker_command
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import Stage, choose_in_sheet, last, until
from tests.core.seeing import write_seeing_model

SECRET = "Quetzalcoatlus"  # in the question, in the document, and in the image's metadata
SETTINGS = assign_all(Settings(), [("sampling.max_tokens", 24), ("prefill.mode", "off")])


def image() -> bytes:
    notes = PngInfo()
    notes.add_text("Comment", SECRET)
    stream = BytesIO()
    Pillow.effect_noise((64, 48), 90).convert("RGB").save(stream, "PNG", pnginfo=notes)
    return stream.getvalue()


async def test_nothing_is_left_of_an_image_and_a_secret(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the chats, the write-ahead log, the backups, the images, the caches, the vectors, the logs and the
    server's files. Only what the person exported stays.
    """
    home, temporary, exported = (tmp_path / name for name in ("home", "temporary", "exported"))
    for each in (temporary, exported):
        each.mkdir()
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(home))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    write_seeing_model(tmp_path / "model")
    data = image()
    window = await stage.ready(folder=home / "data", command=worker_command(), model=str(tmp_path / "model"))
    controller, library = window.controller, window.controller.home.library
    window.views.inspector.set_settings(SETTINGS)
    kept = library.images.keep(data, "receipt.png")

    def marked() -> set[str]:
        """Files of Draftlight with the secret or the image's hash in bytes or name."""
        files = [each for folder in (home, temporary) for each in folder.rglob("*") if each.is_file()]
        words = (SECRET.encode(), kept.hash.encode(), kept.hash.upper().encode())
        return {
            str(each.relative_to(tmp_path))
            for each in files
            if kept.hash in each.name or any(word in each.read_bytes() for word in words)
        }

    def derived() -> set[str]:
        """Vectors and caches, which have the words as figures."""
        folders = (home / "cache" / "vectors", home / "cache" / "contexts")
        return {each.parent.name for folder in folders for each in folder.rglob("*") if each.is_file()}

    text = f"The word is {SECRET}. " * 8
    document = Attachment("notes.txt", text)
    message = Message("user", f"What is {SECRET}?", (document,), images=(kept,))
    controller.asking.submit(message)
    await until(lambda: last(window).status == "finished", 60, what="no answer")
    await window.worker.ask(EmbedDocument("", text), DocumentEmbedded)
    chat_id = controller.chats.open.id
    # A second version refers to the image as well, and so does the draft that is left in the chat.
    controller.chats.keep(controller.chats.open.with_draft(replace(message, attachments=())))
    transfer = controller.chat.transfer
    transfer.export(chat_id, "markdown")
    await choose_in_sheet(window, exported / "chat.md")
    await until(lambda: not transfer.is_busy)

    # A client of the server sends both, too.
    address = await switch_on(window)
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    content = [{"type": "text", "text": SECRET}, {"type": "image_url", "image_url": {"url": url}}]
    served = await Asked(address, "", tokens=8, messages=[{"role": "user", "content": content}]).whole()
    assert served.is_whole, served.raw
    window.app_settings.set("server.on", False)

    controller.chat.start()  # leaving a chat saves its cache
    assert library.flush()
    Backups(home / "data" / "chats.db").make()
    await until(lambda: derived() == {"vectors", "contexts"}, what="no vectors or no cache are saved")
    names = {Path(each).name for each in marked()}
    assert {"chats.db-wal", kept.hash, f"{kept.hash}.png"} <= names
    assert any(name.startswith("chats-0") for name in names), names  # the backup
    assert not any("temporary" in each for each in marked())  # the server's request has ended

    controller.chats.delete(chat_id)
    assert library.flush()
    assert library.images.is_kept(kept.hash)  # it can be restored
    controller.chat.listing.erase(chat_id)
    assert library.flush()
    await until(lambda: not marked(), what="the image or the secret is left")
    await until(lambda: not derived(), what="vectors or a cache are left")
    await stage.close()
    assert marked() == derived() == set()
    assert list((home / "data" / "images").iterdir()) == []
    assert SECRET in (exported / "chat.md").read_text()
    assert (exported / "chat-images" / "receipt.png").read_bytes() == data
