"""Reads the chats of an export: a ZIP archive, a JSON file, or a folder of JSON files.

Files and formats are recognised by content. The chats are read one after the other, so that memory does not
depend on the size of the archive, and a damaged chat costs only itself: a JSON file is split into the
elements of its array, one object per chat, by its brackets and strings only, and each is parsed on its own.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from msgspec import Struct, field

from core.chat_archives import strings
from core.chat_archives.claude import project_name
from core.chat_archives.formats import read_chats
from core.chat_archives.tree import ArchivedPath, Tree
from core.chat_archives.values import ArchivedChat
from core.errors import RequestError, reason_of

_PIECE_BYTES = 1 << 20
# Everything up to the next bracket outside of strings, and up to the next quote; in linear time.
_SKIPPED = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*"[^"{}\[\]]*+)*', re.S)
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*', re.S)
# Draftlight's own export has its chats in the second field.
_OWN = re.compile(rb'\s*\{\s*"draftlight_chats"\s*:\s*(\d{1,9})\s*,\s*"chats"\s*:\s*\[')
_HEAD_BYTES = 4096
# UTF-16 and UTF-32 have zero bytes in the first characters of a JSON file; the longer marks come first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Elements:
    """The elements of the array in `stream`, or its objects one after the other if it contains no array.

    - `own`: the format number of Draftlight's own export, None for another file.
    - `damaged`: the file ended inside an element, or has something other than objects between them.
    - `too_large`: elements that were skipped because they have more than `most_bytes`.

    All three are complete after the iteration.
    """

    def __init__(self, stream: IO[bytes], most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._pieces = _utf8(stream)
        self._data = b""
        while len(self._data) < _HEAD_BYTES and self._more():
            pass
        self.own: int | None = None
        self.damaged = False
        self.too_large = 0
        match = _OWN.match(self._data)
        self._at = 0
        if match:
            self.own, self._at = int(match[1]), match.end()
        self._is_array = match is not None
        if not match:
            head = self._data[:_HEAD_BYTES].lstrip()
            self._is_array = head.startswith(b"[")
            if self._is_array:
                self._at = self._data.index(b"[") + 1
        self.is_empty = not self._data
        self.is_json = self._is_array or self._data[:_HEAD_BYTES].lstrip().startswith(b"{")

    def __iter__(self) -> Iterator[bytes]:
        """Yields each object as bytes of UTF-8, which may not be valid JSON."""
        depth, begin, searched, quoted = 0, self._at, self._at, False
        dropped = False  # the element that is being skipped is too large
        while self.is_json:
            data = self._data
            if quoted:
                end = _INSIDE.match(data, searched).end()  # type: ignore[union-attr]
                if end < len(data) and data[end : end + 1] == b'"':
                    searched, quoted = end + 1, False
                    continue
                searched = end  # at a backslash whose second half is missing, or at the end
            else:
                end = _SKIPPED.match(data, searched).end()  # type: ignore[union-attr]
                if end < len(data):
                    mark, searched = data[end : end + 1], end + 1
                    if mark == b'"':  # its end is in a later piece
                        quoted = True
                        continue
                    if mark in b"{[":
                        if depth == 0:
                            self._note_gap(data[begin:end])
                            begin, dropped = end, False
                        depth += 1
                        continue
                    depth -= 1
                    if depth < 0:  # the end of the array
                        self._note_gap(data[begin:end])
                        return
                    if depth == 0:
                        size = searched - begin
                        if dropped or size > self._most_bytes:
                            self.too_large += 1
                        else:
                            yield data[begin:searched]
                        begin = searched
                    continue
                searched = end
            if depth and (dropped or len(data) - begin > self._most_bytes):
                dropped, begin = True, searched
            elif not depth and searched - begin > _HEAD_BYTES:
                self._note_gap(data[begin:searched])
                begin = searched
            # Larger pieces for larger elements: each byte is copied a constant number of times.
            self._data = data[begin:]
            searched, begin = searched - begin, 0
            if not self._more():
                self.damaged = self.damaged or depth > 0 or self._is_array or bool(self._data.strip())
                return

    def _more(self) -> bool:
        """Appends at least as much as there is. False at the end of the file."""
        pieces, size = [self._data], 0
        while size < max(_PIECE_BYTES, len(self._data)):
            piece = next(self._pieces, b"")
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        self._data = b"".join(pieces)
        return size > 0

    def _note_gap(self, gap: bytes) -> None:
        if gap.strip(b" \t\r\n,"):
            self.damaged = True


def _utf8(stream: IO[bytes]) -> Iterator[bytes]:
    """The content of `stream` in pieces of UTF-8, without a byte order mark."""
    head = stream.read(_PIECE_BYTES)
    codec = next((codec for mark, codec in _MARKS if head.startswith(mark)), "")
    if not codec and b"\0" in head[:4]:
        codec = "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    if not codec:
        yield head.removeprefix(codecs.BOM_UTF8)
        while piece := stream.read(_PIECE_BYTES):
            yield piece
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    while head:
        yield decoder.decode(head).encode("utf-8", "replace")
        head = stream.read(_PIECE_BYTES)


# One chat as JSON, images included. All JSON files of an archive, unpacked.
MOST_CHAT_BYTES = 64 * 1024 * 1024
MOST_BYTES = 8 * 1024 * 1024 * 1024
_MOST_FILES = 100_000
# Real chats are compressed to between a third and a thirtieth.
_MOST_RATIO = 200
_SMALL_BYTES = 16 * 1024 * 1024
_ENDINGS = (".json", ".jsonl")
_ZIP_MARKS = (b"PK\3\4", b"PK\5\6")
# Exceptions of `zipfile` for damaged archives; OSError for an offset before the beginning.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


# Two fields of each format that are near the beginning of its exports; other files have one of them.
_CHAT_FIELDS = (
    (re.compile(rb'"mapping"\s*:\s*\{'), re.compile(rb'"create_time"\s*:')),
    (re.compile(rb'"chat_messages"\s*:\s*\['), re.compile(rb'"uuid"\s*:')),
    (re.compile(rb'"childrenIds"\s*:\s*\['), re.compile(rb'"parentId"\s*:')),
    (re.compile(rb'"versions"\s*:\s*\[\s*\{'), re.compile(rb'"role"\s*:')),
)
# Documents that are ZIP archives too, by their first entry.
_DOCUMENT_ENTRIES = (b"[Content_Types].xml", b"mimetype", b"_rels/")
_LOOKED_AT_BYTES = 64 * 1024


def looks_like_chats(path: Path) -> bool:
    """Whether a file that is dropped is to be imported rather than attached.

    Reads its beginning, and of a ZIP archive the names of its files.
    """
    if path.suffix.lower() not in (".zip", ".json"):
        return False
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(_LOOKED_AT_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
            if head[:4] in _ZIP_MARKS:
                if head[30:].startswith(_DOCUMENT_ENTRIES):
                    return False
                return any(name.lower().endswith(_ENDINGS) for name in zipfile.ZipFile(file).namelist())
    except _BROKEN:
        return False
    head = next(_utf8(io.BytesIO(head)), b"")
    return bool(_OWN.match(head)) or any(one.search(head) and two.search(head) for one, two in _CHAT_FIELDS)


class ChatHead(Struct, frozen=True, tag="chat"):
    """A chat begins. `branch` is the number of the branch that it is, 0 for the conversation itself."""

    id: str
    source: str
    title: str = ""
    created_s: float | None = None
    pinned: bool = False
    system: str = ""
    branch: int = 0


class OwnChat(Struct, frozen=True, tag="own"):
    """A chat of Draftlight's own export, as JSON that is not parsed."""

    json: str


class Losses(Struct, frozen=True, tag="lost"):
    """Counts, by kind, of parts that cannot be kept of the conversation `title` or the file of that name."""

    title: str
    counts: dict[str, int] = field(default_factory=dict)


Record = ChatHead | OwnChat | Losses


class ChatReader:
    """Reads the file or folder `path`. `progressed` gets the bytes that were read, and all bytes.

    `records()` yields heads, each followed by its `ArchivedPath`, and losses. Raises `RequestError` if
    nothing in `path` is a chat.
    """

    def __init__(self, path: Path, progressed: Callable[[int, int], None] = lambda done, total: None) -> None:
        self._path = path
        self._name = path.name or str(path)
        self._progressed = progressed
        self._done_bytes = self._total_bytes = 0
        self._chats = 0
        self._damaged = False
        self._unread: dict[str, None] = {}  # files and folders of a folder
        self._newer = 0

    def records(self) -> Iterator[Record | ArchivedPath]:
        """Yields everything that the export has."""
        for name, stream in self._files():
            try:
                yield from self._file(name, stream)
            except _DamagedError:
                self._damaged = True
                self._unread[name] = None
            except OSError as error:
                raise self._unreadable(error) from None
        for name in self._unread:
            yield Losses(name, {"chats": 1})
        if not self._chats:
            if self._newer:
                raise RequestError(strings.newer(self._name), strings.NEWER_HINT)
            if self._damaged:
                raise RequestError(strings.damaged(self._name), strings.DAMAGED_HINT)
            raise RequestError(strings.no_chats(self._name), strings.NO_CHATS_HINT)

    # ---- files

    def _files(self) -> Iterator[tuple[str, IO[bytes]]]:
        if self._path.is_dir():
            files = []
            for folder, _, names in os.walk(self._path, onerror=self._leave_folder):
                files += [Path(folder, name) for name in sorted(names) if name.lower().endswith(_ENDINGS)]
                if len(files) > _MOST_FILES:
                    raise RequestError(strings.too_many_files(self._name, _MOST_FILES), strings.IN_PARTS)
            self._total_bytes = sum(os.path.getsize(file) for file in files if os.path.isfile(file))
            for file in files:
                with ExitStack() as stack:
                    try:
                        stream = stack.enter_context(self._opened(file))
                    except RequestError:
                        self._unread[file.name] = None
                        continue
                    yield file.name, self._counted(stream)
            return
        with self._opened(self._path) as stream:
            if stream.read(4) in _ZIP_MARKS:
                yield from self._members(stream)
                return
            self._total_bytes = stream.seek(0, os.SEEK_END)
            if self._total_bytes > MOST_BYTES:
                raise RequestError(
                    strings.too_large(self._name, self._total_bytes, MOST_BYTES), strings.IN_PARTS
                )
            stream.seek(0)
            yield self._name, self._counted(stream)

    def _leave_folder(self, error: OSError) -> None:
        """Raises `RequestError` for the folder itself."""
        if Path(error.filename) == self._path:
            raise self._unreadable(error)
        self._unread[Path(error.filename).name] = None

    def _members(self, stream: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
        try:
            archive = zipfile.ZipFile(stream)
        except _BROKEN:
            raise RequestError(strings.damaged(self._name), strings.DAMAGED_HINT) from None
        with archive:
            members = [each for each in archive.infolist() if each.filename.lower().endswith(_ENDINGS)]
            self._total_bytes = sum(each.file_size for each in members)
            if len(members) > _MOST_FILES:
                raise RequestError(strings.too_many_files(self._name, _MOST_FILES), strings.IN_PARTS)
            if self._total_bytes > MOST_BYTES:
                raise RequestError(
                    strings.too_large(self._name, self._total_bytes, MOST_BYTES), strings.IN_PARTS
                )
            for each in members:
                if each.file_size > max(_SMALL_BYTES, _MOST_RATIO * each.compress_size):
                    raise RequestError(strings.unpacks(self._name, each.file_size), strings.UNPACKS_HINT)
            for each in members:
                if each.flag_bits & 1:
                    raise RequestError(strings.locked(self._name), strings.LOCKED_HINT)
                name = each.filename.rpartition("/")[2]
                if name.startswith("._"):  # macOS's resource forks
                    continue
                try:
                    member = archive.open(each)
                except _BROKEN:
                    self._damaged = True
                    continue
                with member:
                    yield name, self._counted(member)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[IO[bytes]]:
        """Never waits for a pipe or a device."""
        try:
            file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        except OSError as error:
            raise self._unreadable(error) from None
        with file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RequestError(strings.not_a_file(self._name), strings.NO_CHATS_HINT)
            yield file

    def _unreadable(self, error: OSError) -> RequestError:
        return RequestError(strings.not_read(self._name, reason_of(error)), strings.DAMAGED_HINT)

    def _counted(self, stream: IO[bytes]) -> IO[bytes]:
        return _Counted(stream, self._advance)  # type: ignore[return-value]

    def _advance(self, read_bytes: int) -> None:
        self._done_bytes += read_bytes
        self._progressed(self._done_bytes, self._total_bytes)

    # ---- chats

    def _file(self, name: str, stream: IO[bytes]) -> Iterator[Record | ArchivedPath]:
        elements = Elements(stream, MOST_CHAT_BYTES)
        if not elements.is_json:
            self._damaged = self._damaged or elements.is_empty
            return
        before = self._chats
        unreadable = unknown = 0
        projects: list[Losses] = []
        try:
            for element in elements:
                if elements.own is not None:
                    if elements.own > 1:
                        self._newer = elements.own
                        return
                    self._chats += 1
                    yield OwnChat(element.decode("utf-8", "replace"))
                    continue
                try:
                    raw, counts = _parsed(element)
                    if project := project_name(raw):
                        projects.append(Losses(project, {"projects": 1}))
                        continue
                    chats = read_chats(raw)
                    unknown += not chats
                    del raw, element
                    yield from self._paths(chats, counts)
                except (ValueError, RecursionError, MemoryError):
                    unreadable += 1
        finally:
            lost = unreadable + elements.too_large + elements.damaged
            if lost:
                self._damaged = True
        yield from projects
        # Archives have files that are not about chats; unreadable ones are not counted as lost.
        if self._chats > before and lost + unknown:
            yield Losses(name, {"chats": lost + unknown})

    def _paths(self, chats: Sequence[ArchivedChat], counts: Counter[str]) -> Iterator[Record | ArchivedPath]:
        """The paths of `chats`; `counts`: losses in reading them."""
        for chat in chats:
            tree = Tree(chat.id, chat.nodes, chat.current)
            for path in tree.paths():
                self._chats += 1
                yield ChatHead(
                    path.id,
                    chat.source,
                    chat.title,
                    chat.created_s,
                    chat.pinned and not path.branch,
                    chat.system,
                    path.branch,
                )
                yield path
            chat.lost += counts
            counts = Counter()
            chat.lost["versions"] += tree.lost_versions
            chat.lost["branches"] += tree.lost_branches
            if found := {kind: count for kind, count in chat.lost.items() if count}:
                yield Losses(chat.title, found)


class _DamagedError(Exception):
    """The file cannot be unpacked further."""


class _Counted:
    """A stream that reports how much was read. Raises `_DamagedError`."""

    def __init__(self, stream: IO[bytes], advance: Callable[[int], None]) -> None:
        self._stream = stream
        self._advance = advance

    def read(self, size_bytes: int) -> bytes:
        try:
            data = self._stream.read(size_bytes)
        except _BROKEN as error:
            raise _DamagedError from error
        self._advance(len(data))
        return data


def _parsed(element: bytes) -> tuple[Any, Counter[str]]:
    """The value of an element; counts its damaged characters. Raises `ValueError` or `RecursionError`."""
    counts: Counter[str] = Counter()
    try:
        text = element.decode()
    except UnicodeDecodeError:
        text = element.decode("utf-8", "replace")
        counts["characters"] = text.count("\ufffd")
    return json.loads(text, strict=False), counts
