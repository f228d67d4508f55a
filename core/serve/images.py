"""Images of requests: their base64 in the shapes of the APIs, and their files for the worker.

`given_image` reads a part of a message; nothing is decoded then. `ServedImages.describe` decodes the base64
into files that only this user can read, and has a bounded child process describe each
(`core.documents.client.ImageReading`), off the loop. The files are erased when the request ends: its next
one sends its images again. Errors of an image are kept with it and reported later, because a client first
needs to know if the model does not accept images.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.documents.client import ImageReading
from core.errors import RequestError, reason_of
from core.events import Image
from core.system.private import FILE_MODE

# Limits of one request: Anthropic's for images, and OpenAI's for an image's bytes.
MOST_IMAGES = 100
MOST_BYTES = 20 * 1024 * 1024
# Processes at a time, of up to 1 GB each.
_READERS = 2
# Descriptions of the latest images: a chat sends all of its images with each question.
_KNOWN = 256
_DATA = re.compile(r"data:(?:image/)?(?P<kind>[\w.+-]*)[^,]{0,200}?;base64,", re.IGNORECASE)
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SPACES = re.compile(r"\s+")
_PREFIX = "draftlight-served-images-"
_SEND = "Send the image itself as base64"


class GivenImage(Struct):
    """An image of a request.

    - `place`: its field. `kind`: its part's type.
    - `data`: base64. `suffix`: of its file's name.
    - `problem`: the wrong field, and why the image is not read; None: nothing is wrong.
    - `replaceable`: a model that does not see reads a few words in its place.
    - `image`: its description, once its file has been read.
    """

    place: str
    kind: str
    data: str = ""
    suffix: str = "img"
    problem: tuple[str, str] | None = None
    replaceable: bool = False
    image: Image | None = None


def given_image(place: str, part: Mapping[str, Any], kind: str) -> GivenImage:
    """The image in the part at `place`, in the shape of any API. Its problem names what to send."""
    for name, value in _sources(part):
        where = f"{place}.{name}"
        if name.endswith("file_id"):
            return _wrong(place, kind, where, f"names a file; this server stores none. {_SEND}")
        if not isinstance(value, str):
            return _wrong(place, kind, where, "is not a text")
        if name.endswith("data"):
            media = next((media for media in map(_media, (part, part.get("source"))) if media), "")
            return GivenImage(place, kind, value, _suffix(media.rpartition("/")[2]))
        head = _DATA.match(value[:300])
        if head is not None:
            return GivenImage(place, kind, value[head.end() :], _suffix(head["kind"]))
        if _REMOTE.match(value):
            why = "is the address of an image; Draftlight fetches nothing from a network"
            return _wrong(place, kind, where, f"{why}. {_SEND}: “data:image/png;base64,…”")
        return _wrong(place, kind, where, f"is not base64. {_SEND}: “data:image/png;base64,…”")
    return _wrong(place, kind, place, f"has no image. {_SEND}")


def _sources(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Fields that may have the image, each with its value: OpenAI's two, Anthropic's, and MCP's."""
    given, source = part.get("image_url"), part.get("source")
    if isinstance(given, Mapping):
        yield "image_url.url", given.get("url")
    elif given is not None:
        yield "image_url", given
    if isinstance(source, Mapping):
        name = {"url": "url", "file": "file_id"}.get(str(source.get("type")), "data")
        yield f"source.{name}", source.get(name)
    for name in ("data", "file_id"):
        if part.get(name) is not None:
            yield name, part[name]


def _media(given: Any) -> str:
    names = ("media_type", "mimeType", "mime_type")
    found = (given.get(name) for name in names) if isinstance(given, Mapping) else ()
    return next((each for each in found if isinstance(each, str)), "")


def _suffix(kind: str) -> str:
    return kind.lower() if re.fullmatch(r"[A-Za-z0-9]{2,5}", kind) else "img"


def _wrong(place: str, kind: str, where: str, why: str) -> GivenImage:
    return GivenImage(place, kind, problem=(where, f"“{where}” {why}."))


class ImageFiles:
    """A folder of one request's images, which only this user can read; erased at the end of the context.

    `write` may be called on any thread. Raises `OSError`.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._lock = threading.Lock()
        self._readings: list[ImageReading] = []
        self._closed = False

    def write(self, name: str, data: bytes) -> ImageReading:
        """A new file. Raises `RequestError` if the request has ended, `OSError`."""
        path = self._folder / name
        with self._lock:
            if self._closed:
                raise RequestError("The request has ended.")
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE), "wb") as file:
                file.write(data)
            self._readings.append(reading := ImageReading(path))
        return reading

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        """Erases all files; what reads one ends."""
        with self._lock:
            self._closed = True
            for reading in self._readings:
                reading.stop()
            shutil.rmtree(self._folder, ignore_errors=True)


class ServedImages:
    """The images of a server's requests, and descriptions of the latest ones by their bytes."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Image] = OrderedDict()
        self._lock = threading.Lock()
        self._readers = asyncio.Semaphore(_READERS)

    async def describe(self, images: Sequence[GivenImage], files: ImageFiles) -> None:
        """Write the images into `files` and fill in their descriptions or problems.

        Does nothing if there are more than `MOST_IMAGES`, which are refused.
        """
        if len(images) > MOST_IMAGES:
            return

        async def one(number: int, given: GivenImage) -> None:
            async with self._readers:
                await asyncio.to_thread(self._describe, f"image-{number}.{given.suffix}", given, files)

        found = [(number, given) for number, given in enumerate(images, 1) if not given.problem]
        await asyncio.gather(*(one(number, given) for number, given in found))

    def _describe(self, name: str, given: GivenImage, files: ImageFiles) -> None:
        try:
            data = _decoded(given.data)
            key = sha256(data).digest()
            reading = files.write(name, data)
            with self._lock:
                found = self._known.get(key)
            found = found or reading.describe()
            given.image = replace(found, name=name, path=str(reading.path))
            with self._lock:
                self._known[key] = found
                self._known.move_to_end(key)
                while len(self._known) > _KNOWN:
                    self._known.popitem(last=False)
        except RequestError as error:
            given.problem = given.place, f"“{given.place}”: {error.message} {error.hint}".strip()
        except OSError as error:
            given.problem = given.place, f"“{given.place}” cannot be stored: {reason_of(error)}."
        given.data = ""


def _decoded(text: str) -> bytes:
    """The bytes of base64, whose padding and line breaks clients leave out or add. Raises `RequestError`."""
    text = _SPACES.sub("", text).rstrip("=")
    size_bytes = len(text) * 3 // 4
    if size_bytes > MOST_BYTES:
        told = f"The image has {size_bytes:,} bytes; at most {MOST_BYTES:,} are allowed."
        raise RequestError(told, "Scale it down, or save it as JPEG.")
    if not text:
        raise RequestError("The image is empty.", f"{_SEND}.")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError as error:
        raise RequestError("The image is not base64.", f"{_SEND}.") from error


def erase_leftovers() -> None:
    """Erase the images of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        number = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if not number.isdigit():
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, OverflowError):
            continue
