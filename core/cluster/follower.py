"""The follower: a process with one machine's part of a model, and its parent, which waits for leaders.

`Following` starts the child process with the connection as a descriptor and the keys on stdin. The child's
main thread runs the leader's operations; one thread receives messages; another sends heartbeats to the leader
and to the parent, and ends the process if the leader is silent or an operation takes too long. The process
also ends with its leader or its parent.
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from core.cluster.leader import A_TOKEN_S, BEAT_S
from core.cluster.this_machine import Probe, words_of
from core.cluster.wire import (
    Beat,
    Connect,
    Do,
    Done,
    End,
    Failed,
    FollowerMessage,
    Forward,
    Joining,
    LeaderMessage,
    Line,
    LineEnd,
    Listen,
    Listening,
    Load,
    Loaded,
    Loading,
    Look,
    decode_leader_message,
    encode,
    greet_as_follower,
)
from core.errors import ClusterError, DraftlightError, ModelError
from core.system.children import CHILD_FOLDER, child_command, child_environment

if TYPE_CHECKING:  # importing it loads MLX, which must be prepared before
    from core.cluster.shard import Replicas


_LOOK_S = 0.1
_LEAST_SILENCE_S = 10.0
# Time limit of a model's first forward passes, which compile kernels.
_DEFAULT_DEADLINE_S = 30.0
LOST_STATUS = 69


class FollowerInput(Struct, frozen=True):
    """Input of a follower process: its connection, both keys, and the lock file of this machine."""

    descriptor: int
    send_key: bytes
    receive_key: bytes
    lock: str


def main() -> int:
    """Serve the leader until it ends the cluster; returns the exit status."""
    words = sys.stdin.buffer.readline()
    handed = msgspec.json.decode(words, type=FollowerInput)
    from core.models.runtime import prepare

    prepare()
    connection = socket.socket(fileno=handed.descriptor)
    return _Following(Line(connection, (handed.send_key, handed.receive_key)), FileLock(handed.lock)).run()


class _Following:
    def __init__(self, line: Line, working: FileLock) -> None:
        self._line = line
        self._working = working
        self._told: queue.SimpleQueue[tuple[LeaderMessage, bytes]] = queue.SimpleQueue()
        self._probe: Probe | None = None
        self._replicas: Replicas | None = None
        self._check = 0
        self._number = 0
        self._deadline_s = _DEFAULT_DEADLINE_S
        self._due: float | None = None
        self._received_at = time.monotonic()

    def run(self) -> int:
        for target in (self._receive, self._beat, self._watch_starter):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()
        try:
            while True:
                message, payload = self._told.get()
                if isinstance(message, End):
                    self._say(f"The leader ended: {message.why}.")
                    return 0
                self._do(message, payload)
        except LineEnd as error:
            self._leave(f"The leader was lost ({error}).")
        except Exception as error:  # boundary: the leader is informed, and this process ends
            traceback.print_exc()
            reason = (
                (error.message, error.hint) if isinstance(error, DraftlightError) else (_words(error), "")
            )
            self._fail(*reason)
        return LOST_STATUS

    def _do(self, message: LeaderMessage, payload: bytes) -> None:
        match message:
            case Look(model, folder):
                self._look(model, folder)
            case Listen(backend, rank, addresses):
                self._tell(self._listen(backend, rank, addresses))
            case Connect() if self._probe is not None:
                self._tell(self._probe.connect())
            case Load():
                self._load(message)
            case Do(number, actions):
                if self._replicas is None or number != self._number + 1:
                    raise ModelError(f"Operation {number} arrived instead of {self._number + 1}.")
                tokens = sum(len(each.ids) for each in actions if isinstance(each, Forward))
                started = time.monotonic()
                self._due = started + self._deadline_s + A_TOKEN_S * tokens
                positions = self._replicas.do(actions)
                self._due = None
                self._number = number
                self._check = zlib.crc32(payload, self._check)
                self._tell(Done(number, self._check, *positions, time.monotonic() - started))
            case _:
                pass

    def _look(self, model: str, folder: str) -> None:
        from core.cluster.this_machine import digest_of, seen

        found = seen(not self._works())
        self._working.release()
        if model:
            try:
                found = msgspec.structs.replace(found, digest=digest_of(model, folder))
            except DraftlightError as error:
                found = msgspec.structs.replace(found, problem=str(error))
        self._tell(found)

    def _listen(self, backend: str, rank: int, addresses: tuple[str, ...]) -> Listening:
        try:
            self._probe = Probe(backend, rank, addresses)
        except (OSError, DraftlightError) as error:
            return Listening(words_of(error))
        return Listening()

    def _load(self, load: Load) -> None:
        from core.cluster.shard import Replicas, Shard, split_model
        from core.cluster.this_machine import digest_of, folder_of, join
        from core.models.loader import load_part

        if not self._works():
            raise ModelError("It already belongs to a cluster.")
        folder = folder_of(load.model, load.folder)
        if digest_of(load.model, load.folder) != load.digest:
            raise ModelError(f"The files in {folder} have changed since the check.", "Try again.")
        self._say(f"Loading {load.model} as machine {load.rank + 1} of {len(load.places)}.")
        self._deadline_s = load.deadline_s
        self._tell(Joining())
        group = join(load.backend, load.rank, load.places)
        self._tell(Loading("reading its part"))
        shard = Shard(load_part(folder, lambda model: split_model(model, group, load.split)))
        self._replicas = Replicas(shard)
        self._tell(Loaded(shard.kinds))
        self._say(f"Following with {load.model}.")

    def _works(self) -> bool:
        """Acquires the machine's lock; False if another process has it."""
        try:
            self._working.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def _tell(self, message: FollowerMessage) -> None:
        self._line.send(encode(message))

    def _say(self, words: str) -> None:
        """Prints a status line of `draftlight follow`."""
        os.write(1, f"{words}\n".encode())

    def _fail(self, message: str, hint: str = "") -> None:
        with suppress(LineEnd):
            self._tell(Failed(message, hint))
        self._leave(message)

    def _leave(self, why: str) -> None:
        """Exits immediately, because MLX may be waiting for a lost machine."""
        with suppress(OSError):
            self._say(why)
        os._exit(LOST_STATUS)

    # ---- hearing thread

    def _receive(self) -> None:
        try:
            while True:
                payload = self._line.receive()
                self._received_at = time.monotonic()
                message = decode_leader_message(payload)
                if not isinstance(message, Beat):
                    self._told.put((message, payload))
                if isinstance(message, End):
                    if self._due is not None:
                        self._leave(f"The leader ended: {message.why}.")
                    return
        except LineEnd as error:
            self._leave(f"The leader was lost ({error}).")
        except DraftlightError as error:
            self._fail(error.message, error.hint)

    # ---- heart

    def _beat(self) -> None:
        beat_at = 0.0
        while True:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if now - beat_at >= BEAT_S:
                beat_at = now
                with suppress(LineEnd):  # the receiving thread reports the lost leader
                    self._tell(self._memory())
                with suppress(OSError):
                    self._say(".")
            due, silence_s = self._due, max(self._deadline_s, _LEAST_SILENCE_S)
            if due is not None and now > due:
                self._fail("An operation took longer than its deadline.")
            if now - self._received_at > silence_s:
                self._leave(f"The leader has been silent for {silence_s:.0f} s.")

    def _memory(self) -> Beat:
        from core.models import memory

        return Beat(memory.used_bytes(), memory.limit_bytes())

    # ---- the starter's thread

    def _watch_starter(self) -> None:
        while sys.stdin.buffer.read(1):
            pass
        self._leave("It was stopped.")


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no words'}."[:300]


# ---- waiting for leaders
#
# The parent process loads no model: each leader is served by a child process, so that nothing of a cluster
# remains after it ends. Unauthenticated connections are closed. One leader is served at a time; others
# receive the answer that this machine is busy. A silent child process is killed.


_VISITORS = 8
# Pause after a connection without the secret.
_WRONG_S = 1.0
# The child sends a heartbeat once per second.
_SILENCE_S = 15.0
_POLL_S = 0.5


class Following:
    """Waits for leaders. The constructor starts to listen. `say` receives status messages from any thread.
    Raises `ClusterError`.
    """

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
                f"Cannot listen on {host}:{port}: {error.strerror or error}.",
                "Choose an unused address of this machine.",
            ) from None
        descriptor, self._lock_file = tempfile.mkstemp(prefix="draftlight-follow-")
        os.close(descriptor)

    @property
    def port(self) -> int:
        """The port."""
        return int(self._listener.getsockname()[1])

    def run(self) -> None:
        """Serves leaders until `close()` or an exception in this thread; then all follower processes end."""
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
        """Stops listening and ends the follower processes."""
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
            handed = FollowerInput(connection.fileno(), *keys, self._lock_file)
            self._children.append(child)
        assert child.stdin is not None
        with suppress(OSError):  # the process has ended; `_watch` reports how
            child.stdin.write(msgspec.json.encode(handed) + b"\n")
            child.stdin.flush()
        return child

    def _watch(self, child: subprocess.Popen[bytes]) -> None:
        """Waits for the end of a child process; kills it if it is silent."""
        assert child.stdout is not None
        received = time.monotonic()
        os.set_blocking(child.stdout.fileno(), False)
        rest = b""
        while True:
            piece = child.stdout.read()
            if piece:
                received = time.monotonic()
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line != b".":
                        self._say(line.decode("utf-8", "replace"))
            if child.poll() is not None:
                break
            if time.monotonic() - received > _SILENCE_S:
                self._say(f"It was silent for {_SILENCE_S:.0f} s and is ended.")
                child.kill()
            time.sleep(_POLL_S)
        with self._lock:
            self._children.remove(child)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
