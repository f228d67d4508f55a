"""The images' folder: what is kept, where, and what happens when the disk does not take it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image as Pillow

from app.session.images import hashes_of
from app.store.images import ImageFolder
from app.store.library import Library
from core.documents import limits
from core.documents.strings import file_size
from core.errors import RequestError
from core.events import Image
from core.system.reader_process import StoppedError
from tests.app.store.chats import chat_of
from tests.app.store.disk import full_disk

RED, BLUE = (255, 0, 0), (0, 0, 255)


def picture(colour: tuple[int, int, int], format: str = "PNG") -> bytes:
    """A file of 400 x 300 pixels."""
    stream = BytesIO()
    Pillow.new("RGB", (400, 300), colour).save(stream, format)
    return stream.getvalue()


@pytest.fixture
def images(tmp_path: Path) -> ImageFolder:
    return ImageFolder(tmp_path / "data" / "images")


def files(images: ImageFolder) -> set[str]:
    return set(os.listdir(images.folder)) if images.folder.is_dir() else set()


def test_an_image_is_kept_as_it_came_for_its_owner_only(images: ImageFolder, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(picture(RED, "JPEG"))
    kept = images.keep(tmp_path / "a.jpg", "receipt.jpg")
    assert (kept.name, kept.width, kept.height) == ("receipt.jpg", 400, 300)
    assert kept.path == str(images.folder / kept.hash)
    assert Path(kept.path).read_bytes() == picture(RED, "JPEG")
    thumbnail = images.thumbnail(kept.hash)
    assert thumbnail
    assert Pillow.open(BytesIO(thumbnail)).size == (320, 240)
    assert stat.S_IMODE(images.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in images.folder.iterdir()} == {0o600}
    assert files(images) == {kept.hash, f"{kept.hash}.png"}


def test_files_with_the_same_pixels_are_one(images: ImageFolder) -> None:
    one, two = images.keep(picture(RED), "a.png"), images.keep(picture(RED, "BMP"), "b.bmp")
    other = images.keep(picture(BLUE), "c.png")
    assert (one.hash, one.path) == (two.hash, two.path) != (other.hash, other.path)
    assert {each.hash for each in images.listed()} == {one.hash, other.hash}
    sizes = sum(each.stat().st_size for each in images.folder.iterdir())
    assert sum(each.size_bytes for each in images.listed()) == sizes


def test_what_is_no_image_leaves_nothing(images: ImageFolder, tmp_path: Path) -> None:
    for source in (b"hello", tmp_path, tmp_path / "missing.png"):
        with pytest.raises(RequestError, match=r"“receipt\.png” is"):
            images.keep(source, "receipt.png")
    with pytest.raises(StoppedError):
        images.keep(picture(RED), "a.png", lambda reading: reading.stop())
    assert files(images) == set()


def test_a_file_that_is_too_large_is_refused_before_it_is_copied(
    images: ImageFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = picture(RED)
    (tmp_path / "a.png").write_bytes(data)
    monkeypatch.setattr(limits, "MOST_IMAGE_BYTES", len(data) - 1)
    for source in (data, tmp_path / "a.png"):
        with pytest.raises(RequestError) as refused:
            images.keep(source, "a.png")
        assert refused.value.message == file_size("a.png", len(data), len(data) - 1)
    assert files(images) == set()
    monkeypatch.setattr(limits, "MOST_IMAGE_BYTES", len(data))
    assert images.keep(tmp_path / "a.png", "a.png") == images.keep(data, "a.png")


def test_a_disk_that_takes_nothing_is_told_and_loses_nothing(images: ImageFolder) -> None:
    kept = images.keep(picture(RED), "a.png")
    with full_disk(), pytest.raises(RequestError, match=r"“b\.png” cannot be added") as refused:
        images.keep(picture(BLUE), "b.png")
    assert refused.value.hint
    images.folder.chmod(0o500)
    try:
        if not os.access(images.folder, os.W_OK):  # root may write anywhere
            with pytest.raises(RequestError, match=r"“b\.png” cannot be added") as refused:
                images.keep(picture(BLUE), "b.png")
            assert "Images cannot be saved in" in refused.value.hint
    finally:
        images.folder.chmod(0o700)
    assert files(images) == {kept.hash, f"{kept.hash}.png"}


def test_a_folder_replaced_by_a_file_is_told(images: ImageFolder) -> None:
    images.folder.parent.mkdir(parents=True)
    images.folder.write_bytes(b"mine")
    with pytest.raises(RequestError, match=r"“b\.png” cannot be added") as refused:
        images.keep(picture(BLUE), "b.png")
    assert "Images cannot be saved in" in refused.value.hint
    assert images.folder.read_bytes() == b"mine"
    assert (images.listed(), images.is_kept("0" * 64), images.thumbnail("0" * 64)) == ([], False, None)


def test_a_name_that_is_no_hash_is_never_a_path(images: ImageFolder, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_bytes(b"secret")
    for hash in ("../secret", "", ".", str(tmp_path / "data" / "secret"), "é" * 64):
        assert images.path(hash).parent == images.folder
        assert not images.is_kept(hash)
        images.erase([hash])
    assert (tmp_path / "data" / "secret").exists()


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[list[Library]]:
    """Closed at the end, whatever happened."""
    opened = [Library(tmp_path / "data")]
    yield opened
    for library in opened:
        library.close()


def test_a_chat_is_stored_without_paths_and_loaded_with_them(
    tmp_path: Path, libraries: list[Library]
) -> None:
    library = libraries[0]
    kept = library.images.keep(picture(RED), "receipt.png")
    gone = replace(kept, hash="f" * 64, path="/elsewhere/gone.png", name="gone.png")
    chat = chat_of(1)
    turn = replace(chat.turns[0], user=replace(chat.turns[0].user, images=(kept, gone)))
    draft = replace(chat.draft, images=(replace(kept, name="draft.png"),))
    chat = replace(chat, turns=(turn, *chat.turns[1:]), draft=draft)
    library.save(chat)
    assert library.close()
    assert str(tmp_path).encode() not in (tmp_path / "data" / "chats.db").read_bytes()
    (tmp_path / "data").rename(tmp_path / "moved")
    libraries.append(Library(tmp_path / "moved"))
    loaded = libraries[1].load("c1")

    def there(image: Image) -> Image:
        return replace(image, path=str(tmp_path / "moved" / "images" / image.hash))

    assert loaded.turns[0].user.images == (there(kept), there(gone))
    assert loaded.draft.images == (there(draft.images[0]),)
    assert hashes_of(loaded) == {kept.hash, gone.hash}
    assert libraries[1].images.is_kept(kept.hash)
    assert not libraries[1].images.is_kept(gone.hash)
    assert [hit.chat_id for hit in libraries[1].search("receipt")] == ["c1"]
