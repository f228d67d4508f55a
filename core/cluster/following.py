"""Following: wait for leaders at an address, and have each followed by a process of its own.

This process holds no model: what a cluster leaves behind, it leaves in a process that ends with it. Strangers
get no further than the greeting. One leader is followed at a time; others are told that this machine is
busy. A follower's process that falls silent is killed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from core.cluster.follower import Handed
from core.cluster.line import greet_as_follower
from core.errors import ClusterError
from core.system.children import CHILD_FOLDER, child_command, child_environment

_VISITORS = 8
# After somebody who does not know the secret.
_WRONG_S = 1.0
# A sign of life comes each second.
_SILENCE_S = 15.0
_LOOK_S = 0.5


class Following:
    """Listens at once. `say` is given what happens, in words, from any thread. Raises `ClusterError`."""

    def __init__(self, host: str, port: int, secret: bytes, say: Callable[[str], None]) -> None:
        self._secret = secret
        self._say = say
        self._greeting = threading.Semaphore(_VISITORS)
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []
        self._closed = False
        try:
            self._listener = socket.create_server((host, port), backlog=_VISITORS)
        except OSError as error:
            raise ClusterError(
                f"{host}:{port} cannot be listened at: {error.strerror or error}.",
                "Give an address of this machine at which nothing else listens.",
            ) from None
        descriptor, self._lock_file = tempfile.mkstemp(prefix="draftlight-follow-")
        os.close(descriptor)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def run(self) -> None:
        """Until `close()`, or an exception in this thread; then all followers' processes end."""
        try:
            while True:
                connection, address = self._listener.accept()
                if not self._greeting.acquire(blocking=False):
                    connection.close()
                    continue
                threading.Thread(
                    target=self._receive, args=(connection, str(address[0])), daemon=True
                ).start()
        except OSError:
            if not self._closed:
                raise
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening; end what follows."""
        self._closed = True
        self._listener.close()
        with self._lock:
            children = list(self._children)
        for child in children:
            with suppress(ProcessLookupError):
                child.kill()
            child.wait()
        Path(self._lock_file).unlink(missing_ok=True)

    def _receive(self, connection: socket.socket, address: str) -> None:
        try:
            keys = greet_as_follower(connection, self._secret)
            if keys is None:
                self._say(f"{address} came and did not know the secret.")
                time.sleep(_WRONG_S)
        finally:
            self._greeting.release()
        with connection:
            if keys is None:
                return
            child = self._start(connection, keys)
        if child is not None:
            self._watch(child)

    def _start(self, connection: socket.socket, keys: tuple[bytes, bytes]) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._closed:
                return None
            child = subprocess.Popen(
                child_command("--follower"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(connection.fileno(),),
                env=child_environment(PYTHONUNBUFFERED="1"),
                cwd=CHILD_FOLDER,
            )
            handed = Handed(connection.fileno(), *keys, self._lock_file)
            self._children.append(child)
        assert child.stdin is not None
        with suppress(OSError):  # it ended at once: the watch says how
            child.stdin.write(msgspec.json.encode(handed) + b"\n")
            child.stdin.flush()
        return child

    def _watch(self, child: subprocess.Popen[bytes]) -> None:
        """Until it has ended; killed if it falls silent."""
        assert child.stdout is not None
        heard = time.monotonic()
        os.set_blocking(child.stdout.fileno(), False)
        rest = b""
        while True:
            piece = child.stdout.read()
            if piece:
                heard = time.monotonic()
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line != b".":
                        self._say(line.decode("utf-8", "replace"))
            if child.poll() is not None:
                break
            if time.monotonic() - heard > _SILENCE_S:
                self._say(f"It was silent for {_SILENCE_S:.0f} s and is ended.")
                child.kill()
            time.sleep(_LOOK_S)
        with self._lock:
            self._children.remove(child)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
