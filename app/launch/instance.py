"""Single instance per data directory: a second start passes its files to the first and exits.

The holder of the lock file is the first instance. The lock names its process, so a lock left by a crash is
taken over, and so is a socket left by a crash, which only the lock holder creates. The second instance sends
one line of JSON and waits for one line that acknowledges it and names the folder from which the first was
started.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from core.errors import RequestError

NOT_HEARD = "Draftlight is already running, but it does not answer."


def not_heard_hint(lock: str) -> str:
    return f"Look for its window, or end its process and start again. If it is not running, delete {lock}."


_LOCK = "window.lock"
_HEARD = b"heard"
_PROGRAM = Path(__file__).resolve().parents[2]
_PATIENCE_MS = 3_000
_MOST_BYTES = 1_000_000

Asked = Callable[[list[Path]], object]


class Asks(Struct, frozen=True):
    """The message of a second start: come to the front, and open these files."""

    files: tuple[str, ...] = ()


class Instance(QObject):
    """`folder` is the data directory. Needs an application; use it on its thread."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._lock = QLockFile(str(folder / _LOCK))
        # No expiry: the process named in it shows whether it is stale.
        self._lock.setStaleLockTime(0)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._take)
        self._asked: Asked | None = None
        self._talks: set[_Talk] = set()

    def claim(self) -> bool:
        """Returns whether this is the first instance, which then serves later ones until `release()`.

        If no lock can be created because the folder is read-only, every instance is the first.
        """
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        if not self._lock.tryLock(0) and self._lock.error() == QLockFile.LockError.LockFailedError:
            return False
        QLocalServer.removeServer(self.address)
        self._server.listen(self.address)
        return True

    @property
    def address(self) -> str:
        """Path of the first instance's socket: short, because socket paths are limited, and the same for a
        user.
        """
        # Qt's default is the shared temporary folder; a folder of the user avoids conflicts.
        place = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        name = hashlib.sha256(str(self._folder.resolve()).encode()).hexdigest()[:16]
        return str(Path(place) / f"draftlight-{name}")

    def hand_over(self, files: Sequence[Path]) -> str:
        """Bring the first instance to the front with `files`; returns the folder of its program.

        Empty for an earlier version. Raises `RequestError` if it does not answer.
        """
        socket = QLocalSocket()
        socket.connectToServer(self.address)
        heard = b""
        if socket.waitForConnected(_PATIENCE_MS):
            asks = Asks(tuple(str(path.resolve()) for path in files))
            socket.write(msgspec.json.encode(asks) + b"\n")
            socket.waitForBytesWritten(_PATIENCE_MS)
            if socket.waitForReadyRead(_PATIENCE_MS):
                heard = bytes(socket.readLine().data())
        socket.abort()
        if not heard.startswith(_HEARD):
            raise RequestError(NOT_HEARD, not_heard_hint(str(self._folder / _LOCK)))
        return os.fsdecode(heard.removeprefix(_HEARD).strip())

    def hear(self, asked: Asked | None) -> None:
        """Call `asked` with the files of each later start. None: keep those that arrive."""
        self._asked = asked

    def release(self) -> None:
        """Release the lock; the next start is the first again."""
        for talk in list(self._talks):
            talk.end()
        self._server.close()
        self._lock.unlock()

    def _take(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            talk = _Talk(socket, self)
            self._talks.add(talk)
            talk.asked.connect(self._tell)
            talk.ended.connect(self._forget)
            talk.read()

    def _tell(self, asks: Asks) -> None:
        if self._asked:
            self._asked([Path(name) for name in asks.files])

    def _forget(self, talk: _Talk) -> None:
        self._talks.discard(talk)
        talk.deleteLater()


class _Talk(QObject):
    """A connection from a later start. It owns the socket, which the server would delete too early."""

    asked = Signal(object)  # Asks
    ended = Signal(object)  # self

    def __init__(self, socket: QLocalSocket, parent: QObject) -> None:
        super().__init__(parent)
        self._socket = socket
        socket.setParent(self)
        socket.readyRead.connect(self.read)
        socket.disconnected.connect(self._disconnected)

    def read(self) -> None:
        """Read the available data."""
        if self._socket.bytesAvailable() > _MOST_BYTES:
            self.end()
        elif self._socket.canReadLine():
            try:
                asks = msgspec.json.decode(bytes(self._socket.readLine().data()), type=Asks)
            except msgspec.DecodeError:
                self.end()  # not from Draftlight
                return
            self._socket.write(_HEARD + b" " + os.fsencode(_PROGRAM) + b"\n")
            self._socket.flush()
            self.asked.emit(asks)

    def end(self) -> None:
        """Close the connection."""
        self._socket.abort()

    def _disconnected(self) -> None:
        self.ended.emit(self)
