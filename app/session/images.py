"""Images of chats: which messages have them, and the archive that keeps their files. Pure.

A message names an image by the hash of its pixels. Paths are not stored: they are filled in when a
chat is loaded (`with_paths`), so that a data folder can be moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation, Turn, Version
from app.session.tools.calls import CallRecord
from core.events import Image, Message

_HasImages = TypeVar("_HasImages", Message, CallRecord)


class KeptImage(Struct, frozen=True):
    """A kept image: the hash of its pixels, and the bytes that it takes on the disk."""

    hash: str
    size_bytes: int


class Stoppable(Protocol):
    """A reading that another thread may stop: `core.documents.client.ImageReading`."""

    def stop(self) -> None: ...


class ImageSource(Protocol):
    """Files of images that the window can show. Any thread."""

    def path(self, hash: str) -> Path:
        """Returns where the image is, or would be."""
        ...

    def is_kept(self, hash: str) -> bool:
        """Whether the image can be shown."""
        ...

    def thumbnail(self, hash: str) -> bytes | None:
        """Returns a PNG of at most 320 x 320 pixels; None if it is missing."""
        ...


class ImageArchive(ImageSource, Protocol):
    """The storage of images, each once: `app.store.images.ImageFolder`. Any thread."""

    def keep(
        self,
        source: Path | bytes,
        name: str,
        started: Callable[[Stoppable], object] = lambda reading: None,
    ) -> Image:
        """Keeps a file, or the bytes of one, and returns its image, whose path is that of the kept file.

        Blocks while a child process reads it; `started` gets the reading, to stop it. Raises `RequestError`,
        `StoppedError`.
        """
        ...

    def listed(self) -> Sequence[KeptImage]:
        """Returns all kept images, the largest first."""
        ...


def in_draft(chat: Conversation) -> Iterator[Message]:
    """Returns the messages of a chat that were not sent: its draft and those that wait."""
    yield chat.draft
    yield from (each.message for each in chat.queued)


def hashes_in(messages: Iterable[Message]) -> set[str]:
    """Returns the hashes of the images of `messages`."""
    return {image.hash for message in messages for image in message.images}


def images_in(version: Turn | Version) -> Iterator[Image]:
    """Returns the images of a question and of the results in its answer."""
    yield from version.user.images
    for call in version.answer.calls:
        yield from call.images


def hashes_of_turn(turn: Turn) -> set[str]:
    """Returns the hashes of the images of all versions of a turn."""
    return {image.hash for version in turn.versions for image in images_in(version)}


def images_of(chat: Conversation) -> Iterator[Image]:
    """Returns all images of a chat, of hidden versions and unsent messages, too."""
    for turn in chat.turns:
        for version in turn.versions:
            yield from images_in(version)
    for message in in_draft(chat):
        yield from message.images


def hashes_of(chat: Conversation) -> set[str]:
    """Returns the hashes of all images of a chat, of hidden versions and unsent messages, too."""
    return {image.hash for image in images_of(chat)}


def with_paths(chat: Conversation, path: Callable[[str], Path | str]) -> Conversation:
    """Returns `chat` with the paths of its images, by their hashes. Turns without images stay as they are."""
    if not hashes_of(chat):
        return chat
    chat = draft_with_paths(chat, path)
    return replace(chat, turns=tuple(turn_with_paths(turn, path) for turn in chat.turns))


def draft_with_paths(chat: Conversation, path: Callable[[str], Path | str]) -> Conversation:
    """Returns `chat` with the paths of the images of its unsent messages."""
    if not hashes_in(in_draft(chat)):
        return chat
    queued = tuple(replace(each, message=_message(each.message, path)) for each in chat.queued)
    return replace(chat, draft=_message(chat.draft, path), queued=queued)


def turn_with_paths(turn: Turn, path: Callable[[str], Path | str]) -> Turn:
    """Returns `turn` with the paths of the images of all its versions."""
    if not any(any(images_in(version)) for version in turn.versions):
        return turn
    others = tuple(
        replace(each, user=_message(each.user, path), answer=_answer(each.answer, path))
        for each in turn.others
    )
    return replace(turn, user=_message(turn.user, path), answer=_answer(turn.answer, path), others=others)


def _answer(answer: Answer, path: Callable[[str], Path | str]) -> Answer:
    if not any(call.images for call in answer.calls):
        return answer
    return replace(answer, calls=tuple(_with_paths(call, path) for call in answer.calls))


def _message(message: Message, path: Callable[[str], Path | str]) -> Message:
    return _with_paths(message, path) if message.images else message


def _with_paths(of: _HasImages, path: Callable[[str], Path | str]) -> _HasImages:
    return replace(of, images=tuple(replace(each, path=str(path(each.hash))) for each in of.images))
