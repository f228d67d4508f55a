"""Chat files: exports chats as JSON or Markdown, and imports both.

JSON has everything and is imported exactly:
`{"draftlight_chats": 1, "chats": [{"chat": …, "turns": [{"text": …, "tokens": […], …}]}]}`.
`text` is the answer without thoughts, for other programs; an import uses the tokens. `others` are the hidden
versions of a turn, `place` is the index of the shown one among all.

Markdown is for people, and its words are imported again:

    # Title
    <!-- draftlight: question 2026-05-04T12:00:00+00:00 -->
    ## You
    …
    <!-- draftlight: attachment "name" -->
    …
    <!-- draftlight: image {"name":"receipt.png","hash":"…","width":400,"height":300} -->
    ![receipt.png](Title-images/receipt.png)
    <!-- draftlight: answer -->
    ## Answer
    …
    <!-- draftlight: call -->
    ### Called get_forecast of weather, 0.8 s
    …
    <!-- draftlight: notes -->
    ### Where the words come from
    …

Notes and calls are not imported. The marks divide the file, so a heading inside a message does not; a line of
a message that looks like a mark gets a backslash. Token tints, figures and settings are only in JSON. Files
of other programs are divided by their headings (You, User, Assistant …). Both kinds name images by hash; the
images' files are in a folder next to the file (`app.store.image_copies`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.origins import note_texts, origins_of_chat
from app.session.strings import WHERE_FROM
from app.store import strings
from app.store.faults import TransferError
from app.store.packing import PackedTurn, forgiving, pack, packed, packed_chat, unpacked
from core.events import TYPED, Attachment, Image, Message, Token
from core.events.wire import well_formed, well_formed_record
from core.system.prepared import prepared

_MARK = re.compile(r"<!-- draftlight: (question|attachment|image|answer|call|notes) ?(.*?) ?-->\s*$")
_ESCAPED = re.compile(r"\\+<!-- draftlight: ")
_ASKS = ("you", "user", "human", "question", "me")
_ANSWERS = ("assistant", "answer", "ai", "model", "bot", "draftlight")
_ESCAPABLE = re.compile(r"[\\\[\]<>*_`]")
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})(.*)")
_HEADING = re.compile(r"#{1,6}\s+\**([\w ]*)")


class FileChat(Struct, frozen=True):
    """A chat and its turns. Without defaults, so that an unreadable field raises."""

    chat: Conversation
    turns: tuple[PackedTurn, ...]


class ChatFile(Struct, frozen=True):
    """The whole file. Its version is checked where it is read: `core.chat_archives.reading`."""

    chats: tuple[FileChat, ...]


def pieces(chats: Iterable[Conversation]) -> Iterator[bytes]:
    """Yields the file of `chats` turn by turn, so that a long chat is not in memory twice."""
    yield b'{"draftlight_chats":1,"chats":['
    for number, chat in enumerate(chats):
        yield (b"," if number else b"") + b'{"chat":' + _encoded(packed_chat(chat)) + b',"turns":['
        for place, turn in enumerate(chat.turns):
            yield (b"," if place else b"") + _encoded(packed(turn, text=True))
        yield b"]}"
    yield b"]}"


def to_json(chats: Iterable[Conversation]) -> bytes:
    return b"".join(pieces(chats))


def decoded(data: bytes) -> Any:
    """Returns the content of a JSON file from elsewhere. Raises `TransferError` if it is none."""
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError:
        raise TransferError(strings.NOT_JSON, strings.NOT_UTF_8) from None
    except RecursionError:
        raise TransferError(strings.NOT_JSON, strings.TOO_DEEP) from None
    except msgspec.MsgspecError as error:
        raise TransferError(strings.NOT_JSON, str(error)) from None


def from_json(data: bytes) -> tuple[Conversation, ...]:
    """Returns the chats of a file. Raises `TransferError`."""
    raw = decoded(data)
    try:
        file: ChatFile = forgiving(raw, ChatFile)
        chats = tuple(replace(each.chat, turns=tuple(map(unpacked, each.turns))) for each in file.chats)
    except RecursionError:
        raise TransferError(strings.DAMAGED_FILE, strings.TOO_DEEP) from None
    except ValueError as error:
        raise TransferError(strings.DAMAGED_FILE, str(error)) from None
    for chat in chats:
        _check_savable(chat)
    return chats


def _check_savable(chat: Conversation) -> None:
    """Raises `TransferError` for numbers and times that the database or the list of chats cannot hold."""
    try:
        times = [each.asked for turn in chat.turns for each in turn.versions]
        if not all(map(_usable, filter(None, [chat.created, chat.deleted, *times]))):
            raise OverflowError
        pack(replace(chat, turns=()))
        for turn in chat.turns:
            pack(packed(turn))
    except (OverflowError, ValueError, TypeError, RecursionError, OSError):
        raise TransferError(strings.CANNOT_BE_SAVED, strings.CANNOT_BE_SAVED_HINT) from None


def _encoded(record: Conversation | PackedTurn | _ImageFact | str) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        return msgspec.json.encode(well_formed_record(record))


# ---- Markdown


class _Part(Struct):
    """A part of a Markdown file: its kind, the text of its mark, its lines."""

    kind: str
    fact: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


class _ImageFact(Struct, frozen=True):
    """The data in the mark of an image."""

    name: str
    hash: str
    width: int
    height: int


def to_markdown(chat: Conversation, link: Callable[[Image], str] = lambda image: "") -> str:
    """Returns the file. `link` returns the path from it to an image's file, empty if that is missing."""
    parts = [f"# {chat.title}\n"]
    origins = origins_of_chat(chat)
    for turn in chat.turns:
        asked = f"{turn.asked.isoformat()} " if turn.asked else ""
        parts.append(
            f"<!-- draftlight: question {asked}-->\n## {strings.YOU}\n\n{_guarded(turn.user.content)}\n"
        )
        for attachment in turn.user.attachments:
            name = _encoded(attachment.name).decode()
            heading = strings.attached(" ".join(attachment.name.split()))
            parts.append(
                f"<!-- draftlight: attachment {name} -->\n### {heading}\n\n{_guarded(attachment.text)}\n"
            )
        for image in turn.user.images:
            fact = _ImageFact(image.name, image.hash, image.width, image.height)
            parts.append(f"<!-- draftlight: image {_encoded(fact).decode()} -->\n{_linked(image, link)}\n")
        parts += _answer_parts(turn.answer, link)
        if notes := note_texts(origins[turn.id], turn.answer.text):
            listed = _guarded("\n".join(f"{number}. {note}" for number, note in enumerate(notes, start=1)))
            parts.append(f"<!-- draftlight: notes -->\n### {WHERE_FROM}\n\n{listed}\n")
    return well_formed("\n".join(parts))


def _linked(image: Image, link: Callable[[Image], str]) -> str:
    name, path = " ".join(image.name.split()), link(image)
    escaped = _ESCAPABLE.sub(r"\\\g<0>", name)
    return f"![{escaped}]({path})" if path else strings.image_missing(name)


def _answer_parts(answer: Answer, link: Callable[[Image], str]) -> Iterator[str]:
    """The texts of an answer, with its calls between them."""
    if not answer.tokens:
        return
    if not answer.calls:
        yield f"<!-- draftlight: answer -->\n## {strings.ANSWER}\n\n{_guarded(answer.words)}\n"
    for words, calls in answer.texts if answer.calls else ():
        if words:
            yield f"<!-- draftlight: answer -->\n## {strings.ANSWER}\n\n{_guarded(words)}\n"
        for call in calls:
            shown = [fenced(text) for text in (call.arguments, call.result)]
            shown += [_linked(image, link) for image in call.images]
            listed = _guarded("\n".join(shown))
            yield f"<!-- draftlight: call -->\n### {call.title}\n\n{listed}\n"


def fenced(text: str) -> str:
    """A block of code with a fence that is longer than those in it."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def from_markdown(text: str) -> Conversation:
    """Returns a new chat with the words of the file. Raises `TransferError` if it has no question."""
    lines = text.replace("\r\n", "\n").split("\n")
    ours = any(_MARK.match(line) for line in lines)
    before, *parts = _by_marks(lines) if ours else _by_headings(lines)
    headings = (line for line, is_code in _with_code(before.lines) if line.startswith("# ") and not is_code)
    title = next(headings, "")[2:].strip()
    turns = _turns(parts)
    if not turns:
        raise TransferError(strings.NO_TURNS, strings.NO_TURNS_HINT)
    chat = Conversation(uuid4().hex, turns[0].asked or datetime.now(UTC), turns)
    return chat.renamed(title) if title != chat.title else chat


def _by_marks(lines: list[str]) -> list[_Part]:
    parts = [_Part("title", "", [])]
    heading = False
    for line in lines:
        if mark := _MARK.match(line):
            parts.append(_Part(mark.group(1), mark.group(2), []))
            heading = True
        elif heading and line.startswith("#"):
            heading = False  # written by `to_markdown`
        else:
            heading = False
            parts[-1].lines.append(line[1:] if _ESCAPED.match(line) else line)
    return parts


def _by_headings(lines: list[str]) -> list[_Part]:
    parts = [_Part("title", "", [])]
    for line, is_code in _with_code(lines):
        heading = None if is_code else _HEADING.match(line)
        alone = heading and not line[heading.end() :].rstrip().strip(":*")
        name = heading.group(1).strip().lower() if heading and alone else ""
        if name in _ASKS or name in _ANSWERS:
            parts.append(_Part("question" if name in _ASKS else "answer", "", []))
        else:
            parts[-1].lines.append(line)
    return parts


def _with_code(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yields each line, and whether it is in a fenced code block; a fence ends with one as long or longer."""
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        yield line, bool(fence or mark)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""


def _turns(parts: list[_Part]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for part in parts:
        if part.kind == "question":
            turns.append(
                Turn(uuid4().hex, Message("user", part.text), Answer((), "imported"), _time(part.fact))
            )
        elif not turns:
            continue
        elif part.kind == "attachment":
            user = turns[-1].user
            attachment = Attachment(_name(part.fact), part.text)
            user = replace(user, attachments=(*user.attachments, attachment))
            turns[-1] = replace(turns[-1], user=user)
        elif part.kind == "image":
            user, image = turns[-1].user, _image(part.fact)
            user = replace(user, images=(*user.images, *image))
            turns[-1] = replace(turns[-1], user=user)
        elif part.text and part.kind not in ("call", "notes"):
            text = f"{turns[-1].answer.text}\n\n{part.text}".lstrip("\n")  # several answers are joined
            token = Token(turns[-1].id, TYPED, text, "normal", 1, 0)
            turns[-1] = replace(turns[-1], answer=Answer((token,), "imported"))
    return tuple(turns)


def _guarded(text: str) -> str:
    """Adds a backslash to lines that look like marks."""
    return "\n".join(
        "\\" + line if _MARK.match(line) or _ESCAPED.match(line) else line for line in text.split("\n")
    )


def _time(fact: str) -> datetime | None:
    with suppress(ValueError):
        if _usable(found := datetime.fromisoformat(fact)):
            return found
    return None


def _usable(when: datetime) -> bool:
    """Whether `when` exists in every time zone: it is stored in UTC, displayed and sorted in local time."""
    return MINYEAR < when.year < MAXYEAR


def _image(fact: str) -> tuple[Image, ...]:
    """The image of a mark; none if a person changed the mark."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(fact.encode(), type=prepared(_ImageFact))
        return (msgspec.convert(msgspec.structs.asdict(found) | {"path": ""}, prepared(Image)),)
    return ()


def _name(fact: str) -> str:
    try:
        return msgspec.json.decode(fact.encode(), type=str)
    except ValueError:
        return fact


_CHARACTERS, _BYTES = 80, 200  # file systems allow 255 bytes, with the suffix and a number


def file_name(title: str) -> str:
    """Returns `title` as a valid file name on all systems, without a suffix; may be empty."""
    name = re.sub(r'[\x00-\x1f<>:"/\\|?*]+', " ", title).strip(" .")[:_CHARACTERS]
    return name.encode("utf-8", "ignore")[:_BYTES].decode("utf-8", "ignore").strip()
