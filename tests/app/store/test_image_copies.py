"""Images beside exported files: copied without replacing anything, and kept again by an import."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow

from app.store.image_copies import ImageCopies, folder_beside, keep_beside
from app.store.images import ImageFolder
from core.events import Image
from tests.app.store.disk import full_disk

RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 255, 0)


def drawn(colour: tuple[int, int, int]) -> bytes:
    stream = BytesIO()
    Pillow.new("RGB", (30, 20), colour).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def images(tmp_path: Path, images_in_process: None) -> ImageFolder:
    return ImageFolder(tmp_path / "data" / "images")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "Tides & ferries.md"


def files(file: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder_beside(file).iterdir()}


def test_images_are_copied_under_their_names_and_each_once(images: ImageFolder, file: Path) -> None:
    copies = ImageCopies(file, images)
    red, blue, green = (images.keep(drawn(each), "receipt.png") for each in (RED, BLUE, GREEN))
    assert not folder_beside(file).exists()  # a chat without images has no folder
    assert copies.add(red) == "Tides%20%26%20ferries-images/receipt.png"
    assert copies.add(blue) == "Tides%20%26%20ferries-images/receipt%20%282%29.png"
    assert copies.add(replace(red, name="again.png")) == copies.add(red)
    assert copies.add(replace(green, name="../../<x>.png")) == "Tides%20%26%20ferries-images/x%20.png"
    assert copies.add(Image("gone.png", "", "9" * 64, 3, 4)) == ""
    assert files(file) == {"receipt.png": drawn(RED), "receipt (2).png": drawn(BLUE), "x .png": drawn(GREEN)}


def test_no_file_is_replaced_and_an_export_that_fails_leaves_nothing(images: ImageFolder, file: Path) -> None:
    red, blue = images.keep(drawn(RED), "a.png"), images.keep(drawn(BLUE), "b.png")
    folder_beside(file).mkdir()
    (folder_beside(file) / "a.png").write_bytes(b"the person's own")
    before = files(file)
    copies = ImageCopies(file, images)
    assert unquote(copies.add(red)).endswith("/a (2).png")
    copies.add(blue)
    copies.undo()
    assert files(file) == before
    # A second export of the chat finds its own files.
    ImageCopies(file, images).add(blue)
    before = files(file)
    again = ImageCopies(file, images)
    assert again.add(blue).endswith("/b.png")
    again.undo()
    assert files(file) == before

    other = ImageCopies(file.with_name("Other.md"), images)
    with full_disk(), pytest.raises(OSError, match="too large"):
        other.add(red)
    other.undo()
    assert sorted(each.name for each in file.parent.iterdir()) == [folder_beside(file).name]


def test_an_import_keeps_the_images_beside_its_file_and_no_others(
    images: ImageFolder, file: Path, tmp_path: Path
) -> None:
    copies = ImageCopies(file, images)
    red, blue = images.keep(drawn(RED), "a.png"), images.keep(drawn(BLUE), "b.png")
    for each in (red, blue):
        copies.add(each)
    (folder_beside(file) / "0 notes.txt").write_text("no image")
    (folder_beside(file) / "0 folder").mkdir()
    (folder_beside(file) / "z.png").write_bytes(drawn(GREEN))
    elsewhere = ImageFolder(tmp_path / "elsewhere")
    begun: list[object] = []
    keep_beside(file, {blue.hash}, elsewhere, begun.append)
    assert elsewhere.is_kept(blue.hash)
    assert len(begun) == 3  # the notes, a.png and b.png, after which nothing is missing
    begun.clear()
    keep_beside(file, {blue.hash}, elsewhere, begun.append)
    keep_beside(file.with_name("Other.md"), {red.hash}, elsewhere, begun.append)
    assert begun == []  # nothing is missing, or there is no folder
