"""Images as their child process decodes them: sizes, colours, refusals, and what the pixels leave out."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

from core.documents.client import ImageReading
from core.documents.images import describe, scaled
from core.errors import RequestError
from core.events import LeftOut

RED, BLUE = (255, 0, 0), (0, 0, 255)


def _picture(colour: tuple[int, int, int] = RED) -> Pillow.Image:
    found = Pillow.new("RGB", (40, 30), colour)
    found.paste((0, 255, 0), (0, 0, 10, 10))
    return found


def _png_of(width: int, height: int) -> bytes:
    """The header of a PNG of this size, and hardly any data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def _pixel(path: Path, x: int, y: int) -> tuple[int, ...]:
    found = describe(path)
    data = scaled(path, found.hash, found.width, found.height, "bicubic")
    at = 3 * (y * found.width + x)
    return tuple(data[at : at + 3])


def test_the_process_gives_size_hash_and_scaled_pixels(tmp_path: Path) -> None:
    _picture().save(tmp_path / "a.png")
    found = ImageReading(tmp_path / "a.png").describe()
    assert (found.name, found.width, found.height, found.left_out) == ("a.png", 40, 30, ())
    data = ImageReading(tmp_path / "a.png").scaled(found.hash, 8, 6, "bicubic")
    assert len(data) == 8 * 6 * 3
    assert tuple(data[-3:]) == RED


@pytest.mark.sweep
def test_a_preview_is_a_png_of_bounded_size(tmp_path: Path) -> None:
    _picture().resize((1500, 1000)).save(tmp_path / "a.bmp")
    found, thumbnail = ImageReading(tmp_path / "a.bmp", name="receipt.png").with_thumbnail()
    assert (found.name, found.width, found.height) == ("receipt.png", 1500, 1000)
    assert found.hash == describe(tmp_path / "a.bmp").hash
    shown = Pillow.open(BytesIO(thumbnail))
    assert (shown.format, shown.size) == ("PNG", (320, 213))
    assert shown.getpixel((300, 200)) == pytest.approx(RED, abs=4)
    reading = ImageReading(tmp_path / "a.bmp")
    assert Pillow.open(BytesIO(reading.preview(found.hash, 9_999))).size == (1500, 1000)  # never larger
    assert Pillow.open(BytesIO(reading.preview(found.hash, 600))).size == (600, 400)
    with pytest.raises(RequestError, match=r"“receipt\.png” has changed"):
        ImageReading(tmp_path / "a.bmp", name="receipt.png").preview("0" * 64)


def test_an_image_that_changed_is_refused(tmp_path: Path) -> None:
    _picture().save(tmp_path / "a.png")
    found = describe(tmp_path / "a.png")
    _picture(BLUE).save(tmp_path / "a.png")
    with pytest.raises(RequestError, match="has changed since it was attached"):
        ImageReading(tmp_path / "a.png").scaled(found.hash, 8, 6, "bicubic")


def test_the_hash_is_that_of_the_pixels(tmp_path: Path) -> None:
    _picture().save(tmp_path / "a.png")
    _picture().save(tmp_path / "b.bmp")
    _picture(BLUE).save(tmp_path / "c.png")
    one, same, other = (describe(tmp_path / name).hash for name in ("a.png", "b.bmp", "c.png"))
    assert one == same != other


@pytest.mark.parametrize(
    ("mode", "name"), [("RGB", "a.webp"), ("RGB", "a.avif"), ("CMYK", "a.jpg"), ("P", "a.gif")]
)
def test_formats_and_colour_models(tmp_path: Path, mode: str, name: str) -> None:
    _picture().convert(mode).save(tmp_path / name)
    assert _pixel(tmp_path / name, 35, 25) == pytest.approx(RED, abs=4)


def test_sixteen_bits_of_grey_become_eight(tmp_path: Path) -> None:
    Pillow.new("I;16", (8, 4), 40_000).save(tmp_path / "a.png")
    assert _pixel(tmp_path / "a.png", 3, 2) == (156, 156, 156)


def test_what_is_transparent_is_white(tmp_path: Path) -> None:
    Pillow.new("RGBA", (8, 4), (255, 0, 0, 0)).save(tmp_path / "a.png")
    assert _pixel(tmp_path / "a.png", 3, 2) == (255, 255, 255)


def test_an_image_is_turned_upright(tmp_path: Path) -> None:
    turned = Pillow.Exif()
    turned[0x112] = 6  # a quarter turn
    _picture().save(tmp_path / "a.jpg", exif=turned, quality=95)
    found = describe(tmp_path / "a.jpg")
    assert (found.width, found.height) == (30, 40)
    assert _pixel(tmp_path / "a.jpg", 25, 5) == pytest.approx((0, 255, 0), abs=6)


def test_of_an_animation_the_first_frame_is_read_and_the_others_are_told(tmp_path: Path) -> None:
    _picture().save(tmp_path / "a.gif", save_all=True, append_images=[_picture(BLUE), _picture((9, 9, 9))])
    assert describe(tmp_path / "a.gif").left_out == (LeftOut("later frame", 2),)
    assert _pixel(tmp_path / "a.gif", 35, 25) == RED


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.png", _png_of(60_000, 60_000), "60,000 × 60,000 pixels; the limit is 64 million"),
        ("a.png", _png_of(1, 60_000), "a side is at most 200 times the other"),
        ("a.png", _png_of(400, 400), "is damaged"),
        ("a.png", b"hello", "not a valid PNG, JPEG"),
        ("a.svg", b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", "is an SVG drawing"),
        ("a.heic", bytes(4) + b"ftypheic" + bytes(99), "is a HEIC image"),
    ],
)
def test_refusals_name_the_file_and_what_to_do(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    if name == "a.heic" and sys.platform == "darwin":
        pytest.skip("sips reads HEIC images")
    with pytest.raises(RequestError, match=message) as refused:
        describe(tmp_path / name)
    assert name in refused.value.message
    assert refused.value.hint


@pytest.mark.sweep
def test_nothing_imports_pillow_before_an_image_is_read() -> None:
    code = (
        "import sys; import core.documents.client, core.documents.images, core.cli.generate;"
        "from core.models.runtime import prepare; prepare(); import core.engine.engine, core.worker.main;"
        "found = [m for m in sys.modules if m.split('.')[0] == 'PIL' or m.startswith('core.vision')];"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
