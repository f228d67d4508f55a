"""Leader: rank 0's side of a running cluster. It sends operations to the followers; any failure ends all.

Each connection has a receiving thread. The watch thread sends heartbeats and looks for followers that are
silent or missed a deadline. The main thread sends: cache changes are collected and sent with the next forward
pass, one message per follower. It does not wait for replies; `Done` is checked when it arrives.

`end()` reports the reason to the listener and all followers and exits the process, because MLX's collectives
may wait for a lost machine forever.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import UnionType
from typing import Any

from core.cluster.wire import (
    GREETING_S,
    Action,
    Beat,
    Begin,
    Changed,
    Do,
    Done,
    Drop,
    End,
    Failed,
    FollowerMessage,
    Forward,
    LeaderMessage,
    Line,
    LineEnd,
    decode_follower_message,
    encode,
    greet_as_leader,
    host_and_port,
)
from core.errors import ClusterError, DraftlightError, ProtocolError
from core.events import ClusterEnd, ClusterEnded, MachineUse
from core.kv.mirrored import Change, MirroredCache
from core.settings.cluster import FOLLOW_PORT, Cluster, Machine

BEAT_S = 1.0
_LOOK_S = 0.1
_SETTLE_S = 0.002
# Heartbeats are sent by threads, which a busy machine may delay.
_LEAST_SILENCE_S = 10.0
# Additional deadline per token of a prompt's chunk.
A_TOKEN_S = 0.05
# MLX's error reports that a machine is lost; which one follows from its closed connection a moment later.
_WHICH_S = 2.0
# Exit status of a process that a cluster ended; EX_UNAVAILABLE in sysexits.
ENDED_STATUS = 69


class Follower:
    """The leader's connection to one machine. `name`: its display name."""

    def __init__(self, machine: Machine, secret: bytes) -> None:
        """Connects. Raises `ClusterError` that names the machine."""
        self.name = machine.name
        self.machine = machine
        host, port = host_and_port(machine.address, FOLLOW_PORT)
        try:
            connection = socket.create_connection((host, port), GREETING_S)
        except OSError as error:
            raise ClusterError(
                f"{machine.name} ({host}:{port}) cannot be reached: {error.strerror or error}.",
                "Check that it is on this network and runs draftlight follow.",
            ) from None
        self.here = str(connection.getsockname()[0])
        self.there = str(connection.getpeername()[0])
        try:
            self.line = Line(connection, greet_as_leader(connection, secret))
        except ClusterError as error:
            connection.close()
            raise ClusterError(f"{machine.name} ({host}:{port}): {error.message}", error.hint) from None
        self.received: queue.SimpleQueue[FollowerMessage | BaseException] = queue.SimpleQueue()
        self.received_at = time.monotonic()
        self.beat = Beat(0, 0)
        self.step_s = 0.0
        self.due: deque[tuple[int, float]] = deque()

    def tell(self, message: LeaderMessage) -> None:
        """Sends `message`. Raises `LineEnd`."""
        self.line.send(encode(message))

    def wait(self, kind: type | UnionType, timeout_s: float) -> Any:
        """The next message, which must be of type `kind`. Raises `ClusterError`."""
        try:
            found = self.received.get(timeout=timeout_s)
        except queue.Empty:
            raise ClusterError(f"{self.name} has not answered for {timeout_s:.0f} s.") from None
        if isinstance(found, kind):
            return found
        if isinstance(found, Failed):
            raise ClusterError(f"{self.name}: {found.message}", found.hint)
        raise ClusterError(
            f"The connection to {self.name} was lost: {found}.", "Check the output of its draftlight follow."
        )


class Leader:
    """The running cluster; `followers` are ordered by rank from 1.

    `on_end` receives the reason of the end; then the process exits with `status`. Before `work()`, a lost
    connection is reported only by the operation that waits for it.
    """

    def __init__(
        self,
        followers: Sequence[Follower],
        deadline_s: float,
        on_end: Callable[[ClusterEnded], None],
        status: int = ENDED_STATUS,
    ) -> None:
        self.followers = tuple(followers)
        self._status = status
        self._deadline_s = deadline_s
        self._on_end = on_end
        self._working = False
        self._closed = threading.Event()
        self._ending = threading.Lock()
        self._caches = 0
        self._dropped: deque[int] = deque()
        self._actions: list[Action] = []
        self._number = 0
        self._check = 0
        self._comparing = threading.Lock()
        self._expected: dict[int, tuple[int, int, int]] = {}
        self._early: list[tuple[Follower, Done]] = []
        self._started_at = 0.0
        self.step_s = 0.0
        self.forwards = 0
        self.messages = 0
        self.bytes = 0
        for follower in self.followers:
            threading.Thread(target=self._receive, args=(follower,), name="follower", daemon=True).start()
        threading.Thread(target=self._watch, name="cluster", daemon=True).start()

    # ---- main thread

    def work(self) -> None:
        """Starts the watch thread. From then on, any failure ends the cluster."""
        self._working = True
        for follower in self.followers:
            follower.received_at = time.monotonic()

    def settle(self) -> None:
        """Waits until all machines have completed all operations; ends this process at the deadline."""
        while any(follower.due for follower in self.followers) and not self._closed.is_set():
            time.sleep(_SETTLE_S)

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
        payload = encode(Do(self._number, tuple(self._actions)))
        self._actions.clear()
        self._check = zlib.crc32(payload, self._check)
        now = self._started_at = time.monotonic()
        due = now + self._deadline_s + A_TOKEN_S * len(ids)
        for follower in self.followers:
            follower.due.append((self._number, max(due, follower.due[-1][1] if follower.due else due)))
            try:
                follower.line.send(payload)
            except LineEnd as error:
                self._lost(follower, error)
        self.forwards += 1
        self.messages += len(self.followers)
        self.bytes += len(self.followers) * len(payload)
        return self._number

    def record_positions(self, number: int, positions: tuple[int, int]) -> None:
        """Records the cache positions of that forward pass on this machine, or `RAISED`."""
        with self._comparing:
            self._expected[number] = (self._check, *positions)
            early, self._early = self._early, []
        for follower, done in early:
            self._compare(follower, done)

    def report_error(self, error: BaseException) -> None:
        """Ends the cluster after an error that may have left the machines with different caches. Does not
        return.
        """
        time.sleep(_WHICH_S)  # a lost or failed machine ends this process before
        if isinstance(error, DraftlightError):
            self.end("", "failed", error.message, error.hint)
        self.end("", "failed", f"This machine failed: {type(error).__name__}: {error}.")

    def close(self) -> None:
        """Ends the cluster in order: followers release the model and wait for another leader."""
        with self._ending:
            if self._closed.is_set():
                return
            self._closed.set()
            self._say_end("it was unloaded")
        for follower in self.followers:
            follower.line.close()

    @property
    def use(self) -> tuple[MachineUse, ...]:
        """Use of each follower's machine."""
        return tuple(
            MachineUse(one.name, one.beat.memory_bytes, one.beat.limit_bytes, one.step_s)
            for one in self.followers
        )

    # ---- any thread

    def end(self, machine: str, end: ClusterEnd, message: str, hint: str = "") -> None:
        """Reports the reason and ends this process. Does not return, except briefly in a second thread."""
        with self._ending:
            if self._closed.is_set():
                return
            self._closed.set()
            try:
                self._on_end(ClusterEnded(machine, end, message, hint))
                threading.Thread(target=self._say_end, args=(message,), daemon=True).start()
                time.sleep(_LOOK_S)
            finally:
                os._exit(self._status)

    def _say_end(self, why: str) -> None:
        for follower in self.followers:
            with suppress(LineEnd):
                follower.tell(End(why))

    def _lost(self, follower: Follower, error: BaseException) -> None:
        if isinstance(error, ProtocolError):
            self.end(follower.name, "failed", f"{follower.name}: {error.message}", error.hint)
        self.end(
            follower.name,
            "lost",
            f"{follower.name} was lost: its connection ended.",
            "With its part of the model all machines ended. See whether it is on and awake, then try again.",
        )

    # ---- a follower's thread

    def _receive(self, follower: Follower) -> None:
        try:
            while True:
                message = decode_follower_message(follower.line.receive())
                follower.received_at = time.monotonic()
                match message:
                    case Beat():
                        follower.beat = message
                    case Done():
                        self._done(follower, message)
                    case Failed() if self._working:
                        self.end(follower.name, "failed", f"{follower.name}: {message.message}", message.hint)
                    case _:
                        follower.received.put(message)
        except (LineEnd, DraftlightError) as error:
            if self._working:
                self._lost(follower, error)
            follower.received.put(error)

    def _done(self, follower: Follower, done: Done) -> None:
        number, _ = follower.due[0] if follower.due else (0, 0.0)
        if done.number != number:
            self._disagrees(follower, f"did operation {done.number} where {number} was to be done")
            return
        with self._comparing:
            # Lets other threads finish if the forward pass computes eagerly.
            if number not in self._expected:
                self._early.append((follower, done))
                return
        self._compare(follower, done)

    def _compare(self, follower: Follower, done: Done) -> None:
        number = done.number
        check, *positions = self._expected[number]  # set until the last follower is removed
        follower.due.popleft()
        follower.step_s = done.took_s
        if done.check != check:
            self._disagrees(follower, f"received other messages than were sent up to operation {number}")
        for here, there in zip(positions, (done.appending, done.window)):
            if -1 not in (here, there) and here != there:
                self._disagrees(
                    follower, f"is at position {there:,} after operation {number}, not at {here:,}"
                )
        if all(not one.due or one.due[0][0] > number for one in self.followers):
            self._expected.pop(number, None)
            self.step_s = time.monotonic() - self._started_at

    def _disagrees(self, follower: Follower, what: str) -> None:
        self.end(follower.name, "disagrees", f"{follower.name} {what}.", "Please report this.")

    # ---- the watch

    def _watch(self) -> None:
        beat_at = 0.0
        while not self._closed.wait(_LOOK_S):
            now = time.monotonic()
            if now - beat_at >= BEAT_S:
                beat_at = now
                for follower in self.followers:
                    with suppress(LineEnd):  # the receiving thread reports it
                        follower.tell(Beat(0, 0))
            if self._working:
                for follower in self.followers:
                    self._look_at(follower, now)

    def _look_at(self, follower: Follower, now: float) -> None:
        due = follower.due[0] if follower.due else None
        if due is not None and now > due[1]:
            late_s = self._deadline_s + now - due[1]
            self.end(
                follower.name,
                "deadline",
                f"{follower.name} has not done operation {due[0]} within its deadline of {late_s:.0f} s.",
                "See whether it is awake and has memory left, then try again.",
            )
        silence_s = max(self._deadline_s, _LEAST_SILENCE_S)
        if now - follower.received_at > silence_s:
            self.end(
                follower.name,
                "deadline",
                f"{follower.name} has been silent for {silence_s:.0f} s.",
                "See whether it is awake and on the network, then try again.",
            )


def connect(cluster: Cluster, secret: bytes) -> dict[str, Follower | ClusterError]:
    """Connects to all machines of `cluster` at once. The error names the machine that was not reached."""
    found: dict[str, Follower | ClusterError] = {}

    def one(machine: Machine) -> None:
        try:
            found[machine.name] = Follower(machine, secret)
        except ClusterError as error:
            found[machine.name] = error

    threads = [threading.Thread(target=one, args=(machine,)) for machine in cluster.machines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {machine.name: found[machine.name] for machine in cluster.machines}
