"""Single instance per data directory: a second start passes its files to the first and exits.

The holder of the lock file is the first instance. The lock names its process, so a lock left by a crash is
taken over, and so is a socket left by a crash, which only the lock holder creates. The second instance sends
one line of JSON and waits for one line that acknowledges it and names the folder from which the first was
started, or says that the first is closing: then the second waits for the lock.

The socket is in a folder that only this user can enter, and both sides check the user of the other, so that
another user on this machine can neither receive the files' paths nor send any.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from core.errors import RequestError
from core.system.paths import shown
from core.system.prepared import prepared
from core.system.private import FOLDER_MODE, make_folder, tighten

NOT_HEARD = "Draftlight is already running, but it does not answer."
NOT_HEARD_HINT = "Look for its window and wait until it responds, or end its process, and start again."
_LOCK = "window.lock"
_HEARD = b"heard"
_CLOSING = b"closing"
_PROGRAM = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0  # the imports of a first start on a busy machine
_SLICE_MS = 200
_MOST_BYTES = 1_000_000
# <sys/un.h> of macOS; Python has no names for them.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1

Asked = Callable[[list[Path]], object]


class Asks(Struct, frozen=True):
    """The message of a second start: come to the front, and open these files, named as by the file system."""

    files: tuple[bytes, ...] = ()


class Instance(QObject):
    """`folder` is the data directory. Needs an application; use it on its thread."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._lock_path = folder / _LOCK
        self._lock = QLockFile(str(self._lock_path))
        # No expiry: the process named in it shows whether it is stale.
        self._lock.setStaleLockTime(0)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._take)
        self._asked: Asked | None = None
        self._early: list[Asks] = []
        self.is_closing = False
        self._talks: set[_Talk] = set()

    def claim(self, patience_ms: int = 0) -> bool:
        """Returns whether this is the first instance within that time, which then serves later ones until
        `release()`.

        If no lock can be created because the folder is read-only, every instance is the first.
        """
        with contextlib.suppress(OSError):
            make_folder(self._folder)
            # Only a file can be a lock; for a pipe, Qt would wait for a writer.
            if self._lock_path.is_dir():
                self._lock_path.rmdir()
            elif not self._lock_path.is_file():
                self._lock_path.unlink(missing_ok=True)
        if not self._lock.tryLock(patience_ms) and self._lock.error() == QLockFile.LockError.LockFailedError:
            return False
        tighten(self._lock_path)
        with contextlib.suppress(RequestError):  # reported to the second instance, which needs the socket
            QLocalServer.removeServer(self.address)
            self._server.listen(self.address)
        return True

    @property
    def address(self) -> str:
        """Path of the first instance's socket: short, because socket paths are limited, and the same for a
        user. Raises `RequestError` as `socket_folder`.
        """
        name = hashlib.sha256(os.fsencode(self._folder.resolve())).hexdigest()[:16]
        return str(socket_folder() / name)

    def hand_over(self, files: Sequence[Path], give_up: Callable[[], bool] = lambda: False) -> str | None:
        """Bring the first instance to the front with `files`; returns the folder of its program, or None if
        it is closing.

        Raises `RequestError` if it does not answer within `PATIENCE_S` or until `give_up`, which is called
        every 0.2 s, if it releases the lock, or if it is another user's.
        """
        asks = Asks(tuple(os.fsencode(path.resolve()) for path in files))
        connection, address = QLocalSocket(), self.address
        until = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < until and not give_up():
                if connection.state() is QLocalSocket.LocalSocketState.UnconnectedState:
                    connection.connectToServer(address)
                    if not connection.waitForConnected(_SLICE_MS):
                        # It holds the lock and does not listen yet, or it has ended.
                        if self._lock.tryLock(_SLICE_MS):
                            self._lock.unlock()
                            break
                        continue
                    if not is_own(connection):
                        break
                    connection.write(msgspec.json.encode(asks) + b"\n")
                if connection.waitForReadyRead(_SLICE_MS):
                    heard = bytes(connection.readLine().data())
                    if heard.startswith(_CLOSING):
                        return None
                    if heard.startswith(_HEARD):
                        return os.fsdecode(heard.removeprefix(_HEARD).strip())
                    break
        finally:
            connection.abort()
        raise RequestError(NOT_HEARD, NOT_HEARD_HINT)

    def hear(self, asked: Asked) -> None:
        """Call `asked` with the files of each later start, and now of those before this call."""
        self._asked = asked
        while self._early:
            self._tell(self._early.pop(0))

    def turn_away(self) -> None:
        """Have later starts wait for `release()`."""
        self.is_closing = True

    def release(self) -> None:
        """Release the lock; the next start is the first again."""
        for talk in list(self._talks):
            talk.end()
        self._server.close()
        self._lock.unlock()

    def _take(self) -> None:
        while (connection := self._server.nextPendingConnection()) is not None:
            if not is_own(connection):
                connection.abort()
                connection.deleteLater()
                continue
            talk = _Talk(connection, self)
            self._talks.add(talk)
            talk.asked.connect(self._tell)
            talk.ended.connect(self._forget)
            talk.read()

    def _tell(self, asks: Asks) -> None:
        if self._asked:
            self._asked([Path(os.fsdecode(name)) for name in asks.files])
        else:
            self._early.append(asks)

    def _forget(self, talk: _Talk) -> None:
        self._talks.discard(talk)
        talk.deleteLater()


class _Talk(QObject):
    """A connection from a later start. It owns the socket, which the server would delete too early."""

    asked = Signal(object)  # Asks
    ended = Signal(object)  # self

    def __init__(self, connection: QLocalSocket, parent: Instance) -> None:
        super().__init__(parent)
        self._instance = parent
        self._socket = connection
        connection.setParent(self)
        connection.readyRead.connect(self.read)
        connection.disconnected.connect(self._disconnected)

    def read(self) -> None:
        """Read the available data."""
        if self._socket.bytesAvailable() > _MOST_BYTES:
            self.end()
        elif self._socket.canReadLine():
            try:
                asks = msgspec.json.decode(bytes(self._socket.readLine().data()), type=prepared(Asks))
            except msgspec.DecodeError:
                self.end()  # not from Draftlight
                return
            is_closing = self._instance.is_closing
            reply = _CLOSING if is_closing else _HEARD + b" " + os.fsencode(_PROGRAM)
            self._socket.write(reply + b"\n")
            self._socket.flush()
            if not is_closing:
                self.asked.emit(asks)

    def end(self) -> None:
        """Close the connection."""
        self._socket.abort()

    def _disconnected(self) -> None:
        self.ended.emit(self)


# ---- other users


def socket_folder() -> Path:
    """The folder of this user's sockets, created if missing. Raises `RequestError` if it is not theirs."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"draftlight-{os.geteuid()}"
    try:
        with contextlib.suppress(FileExistsError):  # not `make_folder`, which would create the parents
            folder.mkdir(FOLDER_MODE)
        tighten(folder)
        found = folder.lstat()
    except OSError as error:
        raise RequestError(
            f"{shown(str(folder))} cannot be created: {error.strerror}.",
            "Set XDG_RUNTIME_DIR or TMPDIR to a folder that you can write to.",
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise RequestError(
            f"{shown(str(folder))} belongs to another user, or is not a folder.",
            "Set XDG_RUNTIME_DIR to a folder that only you can write to.",
        )
    return folder


def is_own(connection: QLocalSocket) -> bool:
    """Whether the process at the other end runs as this user or as root."""
    with socket.socket(fileno=os.dup(int(connection.socketDescriptor()))) as peer:
        try:
            if sys.platform == "darwin":  # struct xucred: version, uid, …
                uid = struct.unpack_from("=II", peer.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76))[1]
            else:  # struct ucred: pid, uid, gid
                uid = struct.unpack("=iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        except OSError:
            return False
    return uid in trusted_users()


def trusted_users() -> set[int]:
    return {os.geteuid(), 0}
