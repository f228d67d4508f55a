"""The ranks of `mlx.launch`: joining MLX's group, and the connections on which rank 0 directs the others.

`mlx.launch` starts the same command on every host and sets MLX_RANK with MLX_HOSTFILE (ring) or
MLX_IBV_DEVICES and MLX_JACCL_COORDINATOR (jaccl). Tensors travel over MLX's group. A rank that waits in a
collective uses a whole core, so the other ranks wait on a TCP connection to rank 0 instead; each operation
arrives there, and only then do all ranks compute together. Rank 0 shares the port and a random number over
the group; a connection without that number is closed. Like MLX's own, these connections are not encrypted.

A frame is a length (4 bytes, big-endian) and a msgpack message:

    rank 0                              the others
    Check                               Checked
    Load                                Loaded
    Do (changes of caches, one forward) Done
    Unload, End                         (none)

Every operation has a deadline on both sides, because a stopped rank hangs the others in a collective without
an error. A lost rank, a missed deadline or an error ends the processes of all ranks: exit status 69, with the
reason on stderr.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec import Struct

from core.errors import ClusterError, DraftlightError, reason_of
from core.events import ClusterEnded
from core.kv.mirrored import Change, MirroredCache
from core.system.prepared import prepared

if TYPE_CHECKING:
    import mlx.core as mx

# EX_UNAVAILABLE in sysexits: the status of a process that the cluster ended.
ENDED_STATUS = 69
# Deadline of an operation, which includes compiling kernels, and more for each token of a prompt's chunk.
_DEADLINE_S = 30.0
DEADLINE_VARIABLE = "DRAFTLIGHT_DEADLINE_S"
_A_TOKEN_S = 0.05
# Time limits for joining the group and for a rank's connection; for reading weights from a slow disk.
_JOIN_S = 60
_CONNECT_S = 15.0
LOAD_S = 3600.0
_LOOK_S = 0.1
# MLX reports a lost rank as an error; which one it was follows from its closed connection a moment later.
_WHICH_S = 2.0
_MOST_BYTES = 16 * 1024 * 1024
_TOKEN_BYTES = 16


class Launch(Struct, frozen=True):
    """This process's place among those of `mlx.launch`. `host`: rank 0's address."""

    rank: int
    size: int
    host: str


def launched() -> Launch | None:
    """The launch that this process is part of; None without a launcher or for a single rank.

    Raises `ClusterError` for a backend other than ring and jaccl.
    """
    rank, environment = os.environ.get("MLX_RANK"), os.environ
    if rank is None:
        return None
    try:
        if file := environment.get("MLX_HOSTFILE"):
            text = Path(file).read_text(encoding="utf-8").strip()
            hosts = json.loads(text) if text else []
            size, first = len(hosts), hosts[0][0] if hosts else ""
        elif file := environment.get("MLX_IBV_DEVICES"):
            size, first = len(json.loads(Path(file).read_text(encoding="utf-8"))), ""
            first = environment["MLX_JACCL_COORDINATOR"]
        elif environment.get("MLX_WORLD_SIZE", "1") == "1":
            return None
        else:
            raise KeyError("MLX_HOSTFILE or MLX_IBV_DEVICES")
        return Launch(int(rank), size, first.rpartition(":")[0].strip("[]")) if size > 1 else None
    except (OSError, ValueError, LookupError, AttributeError) as error:
        raise ClusterError(
            f"The environment of mlx.launch is incomplete: {reason_of(error)}.",
            "Start it with mlx.launch and the backend ring or jaccl.",
        ) from error


def versions() -> str:
    """Versions that must be equal on all ranks."""
    return ", ".join(f"{name} {version(name)}" for name in ("draftlight", "mlx", "mlx-lm"))


@lru_cache(1)
def join() -> mx.distributed.Group:
    """MLX's group of this launch, joined once per process. Main thread. Raises `ClusterError`.

    While MLX waits for the other ranks it holds Python's lock, so only a signal can end the wait: SIGALRM
    ends this process.
    """
    import mlx.core as mx

    print(f"Joining the other ranks; without them this ends after {_JOIN_S} s.", file=sys.stderr, flush=True)
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_JOIN_S)
    try:
        # Without `strict` a failure is a group of one rank.
        return mx.distributed.init(strict=True)
    except RuntimeError as error:
        raise ClusterError(
            f"The ranks could not be joined: {reason_of(error)}.", "Check the addresses in the host file."
        ) from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# ---- messages, as msgpack arrays


class _Message(Struct, frozen=True, tag=True, array_like=True):
    pass


class Check(_Message, frozen=True):
    """Requests a `Checked`. `files`: digest of the model's files on rank 0; `need_bytes`: of one rank."""

    model: str
    files: str
    need_bytes: int


class Checked(_Message, frozen=True):
    """`problem`: why this rank cannot load its part, empty if it can."""

    problem: str = ""
    hint: str = ""


class Load(_Message, frozen=True):
    """Requests a `Loaded`: load this rank's part of the checked model."""

    split: str


class Loaded(_Message, frozen=True):
    """`kinds`: sorted cache types of the layers on this rank."""

    kinds: tuple[str, ...]


class Begin(_Message, frozen=True):
    """Creates an empty cache with this number."""

    cache: int


class Drop(_Message, frozen=True):
    """Releases the cache."""

    cache: int


class Changed(_Message, frozen=True):
    """Applies `change` to the cache."""

    cache: int
    change: Change


class Forward(_Message, frozen=True):
    """Runs this rank's part of the model on `ids` with this cache."""

    cache: int
    ids: tuple[int, ...]


Action = Begin | Drop | Changed | Forward


class Do(_Message, frozen=True):
    """Changes since the last forward pass, and one forward pass as the last action. Numbers rise by one."""

    number: int
    actions: tuple[Action, ...]


class Done(_Message, frozen=True):
    """The operation was completed.

    `appending`, `window`: positions of these entries of the forward pass's cache; −1 if it has none.
    """

    number: int
    appending: int
    window: int


class Unload(_Message, frozen=True):
    """Releases the model."""


class Failed(_Message, frozen=True):
    """Last message of a rank: why it exits."""

    message: str
    hint: str = ""


class End(_Message, frozen=True):
    """Last message of rank 0: the others exit. `why` is empty after an orderly end."""

    why: str = ""


Message = Check | Checked | Load | Loaded | Do | Done | Unload | Failed | End
encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(prepared(Message))
decode = _decoder.decode


class LinkEnd(Exception):
    """The connection was closed or lost, or carried something else than messages."""


class Link:
    """A connection between rank 0 and another rank. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self.name = name
        self._socket = connection
        self._lock = threading.Lock()
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, message: Message) -> None:
        """Raises `LinkEnd`."""
        payload = encode(message)
        try:
            with self._lock:
                self._socket.sendall(len(payload).to_bytes(4, "big") + payload)
        except OSError as error:
            raise LinkEnd(str(error)) from error

    def receive(self) -> Message:
        """The next message. Raises `LinkEnd`."""
        try:
            length = int.from_bytes(_read(self._socket, 4), "big")
            if length > _MOST_BYTES:
                raise LinkEnd(f"a message of {length:,} bytes; at most {_MOST_BYTES:,} are allowed")
            return decode(_read(self._socket, length))
        except (OSError, msgspec.DecodeError) as error:
            raise LinkEnd(str(error)) from error

    @property
    def is_lost(self) -> bool:
        """Whether the other rank closed the connection; messages that wait to be received don't count."""
        try:
            ready, _, _ = select.select([self._socket], [], [], 0)
            return bool(ready) and not self._socket.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        """Closes the connection; a receiver gets `LinkEnd`."""
        with suppress(OSError):  # already closed by the other rank
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _read(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        piece = connection.recv(count - len(parts))
        if not piece:
            raise LinkEnd("its process ended")
        parts += piece
    return bytes(parts)


def deadline_s(tokens: int = 0) -> float:
    """Time limit of an operation over `tokens` tokens."""
    try:
        base = float(os.environ.get(DEADLINE_VARIABLE) or _DEADLINE_S)
    except ValueError:
        raise ClusterError(
            f"{DEADLINE_VARIABLE} is “{os.environ[DEADLINE_VARIABLE]}”.", "Set it to a number of seconds."
        ) from None
    return base + _A_TOKEN_S * tokens


def accept(launch: Launch) -> list[Link]:
    """Rank 0: connections to the other ranks, by rank from 1. Raises `ClusterError`."""
    try:
        listener = socket.create_server((launch.host, 0), backlog=launch.size)
    except OSError as error:
        raise ClusterError(
            f"Cannot listen on {launch.host}, rank 0's address in the host file: {reason_of(error)}.",
            "Name an address of the first machine there.",
        ) from error
    token = os.urandom(_TOKEN_BYTES)
    found: dict[int, Link] = {}
    with listener:
        _shared([listener.getsockname()[1], *token])
        until = time.monotonic() + _CONNECT_S
        while len(found) < launch.size - 1:
            try:
                listener.settimeout(max(0.01, until - time.monotonic()))
                connection, address = listener.accept()
                connection.settimeout(max(0.01, until - time.monotonic()))
                given = _read(connection, _TOKEN_BYTES + 1)
            except (OSError, LinkEnd) as error:
                if time.monotonic() < until:
                    continue  # not a rank
                missing = sorted({*range(1, launch.size)} - found.keys())
                raise ClusterError(
                    f"Rank {missing[0]} did not connect to {launch.host} within {_CONNECT_S:.0f} s.",
                    "Check that the machines reach each other by the addresses in the host file.",
                ) from error
            if given[:-1] == token:
                found[given[-1]] = Link(connection, f"Rank {given[-1]} ({address[0]})")
            else:
                connection.close()
    return [found[rank] for rank in sorted(found)]


def connect(launch: Launch) -> Link:
    """Another rank: its connection to rank 0. Raises `ClusterError`."""
    port, *token = _shared([0] * (_TOKEN_BYTES + 1))
    try:
        connection = socket.create_connection((launch.host, port), _CONNECT_S)
        connection.sendall(bytes([*token, launch.rank]))
    except OSError as error:
        raise ClusterError(
            f"Rank {launch.rank} cannot reach rank 0 at {launch.host}:{port}: {reason_of(error)}.",
            "Check that the machines reach each other by the addresses in the host file.",
        ) from error
    return Link(connection, "Rank 0")


def _shared(numbers: Sequence[int]) -> list[int]:
    """Rank 0's `numbers`, which are zeros on the other ranks."""
    import mlx.core as mx

    group = join()
    try:
        found: Any = mx.distributed.all_sum(
            mx.array(list(numbers), mx.int32), group=group, stream=mx.cpu
        ).tolist()
    except RuntimeError as error:
        raise ClusterError(
            f"Another rank ended before it was connected ({reason_of(error)}).",
            "See the output of mlx.launch for that rank, and start it again.",
        ) from error
    return [int(each) for each in found]


# ---- rank 0


class Leader:
    """Rank 0's side: sends operations to the other ranks, and ends all processes when one of them fails.

    The main thread sends and never waits for a reply, but compares the positions in those that have arrived;
    a receiving thread per rank collects them; a watch thread looks for missed deadlines. `on_end` receives
    the reason, on any thread, before the process exits.
    """

    def __init__(self, links: Sequence[Link], on_end: Callable[[ClusterEnded], None]) -> None:
        self._links = tuple(links)
        self._on_end = on_end
        self._replies: dict[Link, queue.SimpleQueue[Message]] = {link: queue.SimpleQueue() for link in links}
        self._due: dict[Link, deque[tuple[int, float]]] = {link: deque() for link in links}
        self._closed = threading.Event()
        self._ending = threading.Lock()
        self._positions: dict[int, tuple[int, int]] = {}
        self._done_by: deque[tuple[Link, Done]] = deque()
        self._actions: list[Action] = []
        self._dropped: deque[int] = deque()
        self._caches = self._number = self._model = 0
        for link in links:
            threading.Thread(target=self._receive, args=(link,), name=link.name, daemon=True).start()
        threading.Thread(target=self._watch, name="cluster", daemon=True).start()
        atexit.register(self.close)

    # ---- main thread

    def ask(self, message: Check | Load, kind: type[Checked] | type[Loaded]) -> list[Any]:
        """Any thread. Sends `message` to all ranks and returns their replies of type `kind` by rank."""
        self._send(message)
        replies = []
        for link in self._links:
            try:
                reply = self._replies[link].get(timeout=LOAD_S)
            except queue.Empty:
                self.end(f"{link.name} did not load its part within {LOAD_S:.0f} s.")
            if not isinstance(reply, kind):
                self.end(f"{link.name} answered with {type(reply).__name__}.", "Please report this.")
            replies.append(reply)
        return replies

    def load(self, split: str) -> tuple[int, list[Loaded]]:
        """All ranks replace the model by the one that was checked. Returns its number, and their replies."""
        self._actions.clear()
        self._model += 1
        return self._model, self.ask(Load(split), Loaded)

    def unload(self, model: int) -> None:
        """The other ranks release the model of that number, unless another one has replaced it."""
        if model == self._model and not self._closed.is_set():
            self._actions.clear()
            self._send(Unload())

    def settle(self) -> None:
        """Waits until all ranks have completed all operations."""
        while any(self._due.values()) and not self._closed.is_set():
            time.sleep(0.002)

    def begin(self, cache: MirroredCache) -> int:
        """See `CacheMirror`."""
        self._caches += 1
        weakref.finalize(cache, self._dropped.append, self._caches).atexit = False
        self._actions.append(Begin(self._caches))
        return self._caches

    def mirror(self, number: int, change: Change) -> None:
        """See `CacheMirror`."""
        self._actions.append(Changed(number, change))

    def forward(self, cache: MirroredCache, ids: Sequence[int]) -> int:
        """Sends the collected changes and a forward pass over `ids`. Returns the operation's number."""
        while self._dropped:
            self._actions.append(Drop(self._dropped.popleft()))
        self._actions.append(Forward(cache.number, tuple(ids)))
        self._number += 1
        now = time.monotonic() + deadline_s(len(ids))
        for due in self._due.values():
            waiting = tuple(due)  # its thread may remove the last one meanwhile
            due.append((self._number, max(now, waiting[-1][1]) if waiting else now))
        message = Do(self._number, tuple(self._actions))
        self._actions.clear()
        self._send(message)
        return self._number

    def record_positions(self, number: int, positions: tuple[int, int]) -> None:
        """Records this rank's cache positions after that forward pass, and compares those of other ranks."""
        self._positions[number] = positions
        # Before the loop: the positions of operations that complete meanwhile are compared by the next call.
        first = min((due[0][0] for due in map(tuple, self._due.values()) if due), default=number + 1)
        while self._done_by:
            link, done = self._done_by.popleft()
            for own, other in zip(self._positions[done.number], (done.appending, done.window)):
                if -1 not in (own, other) and own != other:
                    self.end(
                        f"{link.name} is at position {other:,} after operation {done.number}, not {own:,}.",
                        "Please report this.",
                    )
        for passed in [each for each in self._positions if each < first]:
            del self._positions[passed]

    def report_error(self, error: BaseException) -> NoReturn:
        """Ends all ranks after an error that may have left them with different caches."""
        time.sleep(_WHICH_S)  # a lost rank ends this process before
        hint = error.hint if isinstance(error, DraftlightError) else ""
        self.end(f"Rank 0 failed: {reason_of(error)}.", hint)

    def close(self) -> None:
        """The other ranks exit in order. Safe to call twice."""
        with self._ending:
            if not self._closed.is_set():
                self._closed.set()
                self._say_end("")

    def _send(self, message: Message) -> None:
        for link in self._links:
            try:
                link.send(message)
            except LinkEnd as error:
                self._lost(link, error)

    # ---- any thread

    def end(self, message: str, hint: str = "") -> NoReturn:
        """Reports the reason to `on_end` and the other ranks, and ends this process."""
        with self._ending:
            try:
                if not self._closed.is_set():
                    self._closed.set()
                    self._on_end(ClusterEnded(message, hint))
                    self._say_end(message)
            finally:
                os._exit(ENDED_STATUS)

    def _say_end(self, why: str) -> None:
        # A stopped rank does not receive, and must not keep this one from ending.
        sending = threading.Thread(target=self._send_end, args=(why,), daemon=True)
        sending.start()
        sending.join(1.0)

    def _send_end(self, why: str) -> None:
        for link in self._links:
            with suppress(LinkEnd):
                link.send(End(why))

    def _lost(self, link: Link, error: BaseException) -> None:
        if not self._closed.is_set():
            self.end(
                f"{link.name} was lost: {reason_of(error)}. All ranks end, because each holds a part of the"
                " model.",
                "See the output of mlx.launch for that rank, and start it again.",
            )

    # ---- a link's thread

    def _receive(self, link: Link) -> None:
        try:
            while True:
                match link.receive():
                    case Done() as done:
                        self._done(link, done)
                    case Failed(message, hint):
                        self.end(f"{link.name} failed: {message}", hint)
                    case reply:
                        self._replies[link].put(reply)
        except LinkEnd as error:
            self._lost(link, error)

    def _done(self, link: Link, done: Done) -> None:
        if not self._due[link] or self._due[link][0][0] != done.number:
            self.end(f"{link.name} completed operation {done.number} out of order.", "Please report this.")
        self._done_by.append((link, done))
        self._due[link].popleft()

    # ---- the watch thread

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_S):
            now = time.monotonic()
            for link, due in self._due.items():
                try:
                    late = now > due[0][1]
                except IndexError:  # nothing is due
                    late = False
                if late:
                    self.end(
                        f"{link.name} has not completed an operation within {deadline_s():.0f} s.",
                        "See whether its machine is awake and has memory left, then start again.",
                    )
