"""Decodes one image in a child process: its size and hash, its pixels at another size, or a smaller PNG.

The first frame, upright as its EXIF data says, as RGB on white. Pillow is imported here alone, in the process
that reads one image: `main`, whose limits the parent sets (`core.documents.client.ImageReading`). Formats are
known by their content: PNG, JPEG, GIF, WebP, TIFF, BMP, AVIF, and on a Mac HEIC, which `sips` converts.
Refusals are `RequestError`s that name the file.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from core.documents import limits, strings
from core.documents.reading import opened_file, shown_name
from core.errors import RequestError, reason_of
from core.events import Image, LeftOut
from core.system.child_bounds import LineOutput, read_within

if TYPE_CHECKING:
    from PIL import Image as Pillow

Filter = Literal["bilinear", "bicubic", "lanczos"]

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "AVIF")
_HEAD_BYTES = 4096
_HEIC_BRANDS = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")
_SIPS = "/usr/bin/sips"
_SIPS_S = 30.0
# The longer side of a thumbnail in a chat, and of the largest preview, in pixels.
THUMBNAIL_PX = 320
PREVIEW_PX = 2048
_WIDE_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I")


class ImageLine(Struct, frozen=True):
    """The line of the process: the image, its pixels uint8 [height, width, 3], or the refusal.

    `thumbnail`: a PNG of the image, at most of the requested size.
    """

    image: Image | None = None
    pixels: bytes | None = None
    thumbnail: bytes | None = None
    refused: str | None = None
    hint: str = ""


def describe(path: Path, name: str = "") -> Image:
    """The image at `path`, called `name` or as its file. Raises `RequestError`."""
    name = name or shown_name(path)
    with _decoded(path, name) as (pixels, left_out):
        return _image(path, name, pixels, left_out)


def scaled(path: Path, hash: str, width: int, height: int, filter: Filter, name: str = "") -> bytes:
    """uint8 [height, width, 3]: the pixels of the image with this `hash`. Raises `RequestError`."""
    from PIL.Image import Resampling

    name = name or shown_name(path)
    with _decoded(path, name) as (pixels, _):
        if hash_of(pixels) != hash:
            raise _changed(name)
        return pixels.resize((width, height), Resampling[filter.upper()]).tobytes()


def preview(path: Path, most_px: int, hash: str = "", name: str = "") -> ImageLine:
    """The image and a PNG of it, whose longer side has at most `most_px` pixels; with `hash`, only the image
    that has it. Raises `RequestError`.
    """
    name = name or shown_name(path)
    with _decoded(path, name) as (pixels, left_out):
        found = _image(path, name, pixels, left_out)
        if hash and found.hash != hash:
            raise _changed(name)
        pixels.thumbnail((most_px, most_px), reducing_gap=3.0)
        stream = BytesIO()
        pixels.save(stream, "PNG")  # without the file's metadata: `pixels` has none
    return ImageLine(found, thumbnail=stream.getvalue())


def jpeg_of(pixels: Any, width: int, height: int, row_bytes: int, quality: int) -> tuple[bytes, str]:
    """A JPEG file of pixels of four bytes (blue, green, red, and one that is not used), and its hash."""
    from PIL import Image as pillow

    image = pillow.frombuffer("RGB", (width, height), pixels, "raw", "BGRX", row_bytes, 1)
    stream = BytesIO()
    image.save(stream, "JPEG", quality=quality, subsampling=0)
    return stream.getvalue(), hash_of(pillow.open(stream))


def _image(path: Path, name: str, pixels: Pillow.Image, left_out: tuple[LeftOut, ...]) -> Image:
    return Image(name, str(path), hash_of(pixels), *pixels.size, left_out=left_out)


def _changed(name: str) -> RequestError:
    return RequestError(strings.image_changed(name), strings.ATTACH_AGAIN)


def hash_of(pixels: Pillow.Image) -> str:
    """SHA-256 of the size and the pixels of an RGB image."""
    found = sha256(f"{pixels.width}x{pixels.height}:".encode())
    for top in range(0, pixels.height, 256):  # all bytes at once would be a second copy
        found.update(pixels.crop((0, top, pixels.width, min(top + 256, pixels.height))).tobytes())
    return found.hexdigest()


@contextmanager
def _decoded(path: Path, name: str) -> Iterator[tuple[Pillow.Image, tuple[LeftOut, ...]]]:
    """The upright RGB image, and a record of omissions."""
    from PIL import Image as pillow
    from PIL import ImageOps

    pillow.MAX_IMAGE_PIXELS = None  # checked below, with a message
    with opened_file(path, name) as (stream, size_bytes):
        if size_bytes > limits.MOST_IMAGE_BYTES:
            told = strings.file_size(name, size_bytes, limits.MOST_IMAGE_BYTES)
            raise RequestError(told, strings.SCALE_IMAGE)
        head = stream.read(_HEAD_BYTES)
        stream.seek(0)
        if b"<svg" in head.lower():
            raise RequestError(strings.image_is_svg(name), strings.CONVERT_IMAGE)
        if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS and b"avif" not in head[8:64]:
            with _converted(path, name) as other, _decoded(other, name) as found:
                yield found
            return
        try:
            with pillow.open(stream, formats=_FORMATS) as image:
                _check_size(image, name)
                frames = 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))
                image.load()
                # Upright first: transposing needs the EXIF data of the decoded image.
                upright = _rgb(ImageOps.exif_transpose(image), name)
        except (RequestError, MemoryError):
            raise
        except Exception as error:  # decoders raise many kinds
            title = pillow_title(error)
            raise RequestError(strings.file_damaged(name, title), strings.CHECK_FILE) from error
    yield upright, ((LeftOut("later frame", frames - 1),) if frames > 1 else ())


def pillow_title(error: Exception) -> str:
    """The name of the expected format in the error for a file that Pillow cannot decode."""
    from PIL import UnidentifiedImageError

    return "PNG, JPEG, GIF, WebP, TIFF, BMP or AVIF" if isinstance(error, UnidentifiedImageError) else "image"


def _check_size(image: Any, name: str) -> None:
    """Before anything is decoded: the size that the header gives."""
    width, height = image.size
    if width * height > limits.MOST_PIXELS:
        told = strings.image_pixels(name, width, height, limits.MOST_PIXELS)
        raise RequestError(told, strings.SCALE_IMAGE)
    if max(width, height) > limits.MOST_ASPECT * min(width, height):
        told = strings.image_aspect(name, width, height, limits.MOST_ASPECT)
        raise RequestError(told, strings.SCALE_IMAGE)


def _rgb(image: Pillow.Image, name: str) -> Pillow.Image:
    """`image` as RGB, on white where it is transparent."""
    from PIL import Image as pillow

    if image.mode in _WIDE_MODES:  # 16 bits of grey; a conversion by Pillow would cut them off
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode == "F":
        raise RequestError(strings.image_is_float(name), strings.CONVERT_IMAGE)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = pillow.new("RGBA", image.size, "white")
        return pillow.alpha_composite(white, image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


@contextmanager
def _converted(path: Path, name: str) -> Iterator[Path]:
    """A PNG of a HEIC image, by the system's own program."""
    if not os.access(_SIPS, os.X_OK):
        raise RequestError(strings.image_is_heic(name), strings.CONVERT_IMAGE)
    with TemporaryDirectory() as folder:
        target = Path(folder) / "image.png"
        command = [_SIPS, "-s", "format", "png", os.path.abspath(path), "--out", str(target)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SIPS_S)
        except (OSError, subprocess.SubprocessError) as error:
            why = strings.file_unreadable(name, reason_of(error))
            raise RequestError(why, strings.CONVERT_IMAGE) from error
        yield target


def main(arguments: Sequence[str]) -> int:
    """Read the image that `arguments` name: path, bytes of memory, seconds of processor, name, then for its
    pixels hash, width, height and filter, for a preview its longest side and hash (may be empty).

    Writes one `ImageLine` to stdout; returns 0 if there is an image, else 1.
    """
    path, (memory_bytes, cpu_s), wanted = Path(arguments[0]), map(int, arguments[1:3]), arguments[4:]
    name, output = arguments[3] or shown_name(path), LineOutput()

    def write(line: ImageLine) -> None:
        output.write(msgspec.json.encode(line))

    def read() -> None:
        match wanted:
            case [hash, width, height, filter]:
                found = scaled(path, hash, int(width), int(height), filter, name)  # type: ignore[arg-type]
                write(ImageLine(pixels=found))
            case [most_px, hash]:
                write(preview(path, int(most_px), hash, name))
            case _:
                write(ImageLine(image=describe(path, name)))

    return read_within(
        memory_bytes,
        cpu_s,
        read,
        lambda error: write(ImageLine(refused=error.message, hint=error.hint)),
        RequestError(strings.file_needs_memory(name, memory_bytes), strings.SCALE_IMAGE),
        lambda why: RequestError(strings.file_unreadable(name, why), strings.CHECK_FILE),
    )
