"""Joining MLX's distributed group, once per process because MLX keeps the group.

MLX reads its configuration from the environment, which is set for the length of the call. While MLX waits
for the other machines it holds Python's lock, so no other thread can end the wait: an alarm interrupts a
pending connection, and if MLX retries, `faulthandler`'s watchdog ends the process. Main thread.

Imports no other part of the model's code: a machine is checked before anything else is loaded.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import mlx.core as mx

from core.cluster.wire import Place
from core.errors import ClusterError

_BACKENDS = ("ring", "jaccl")
# All machines are ready, so joining takes a second or two.
_JOIN_S = 15.0
_GRACE_S = 5.0
_joined = False


def backends() -> tuple[str, ...]:
    """The backends that MLX supports on this machine."""
    return tuple(each for each in _BACKENDS if mx.distributed.is_available(backend=each))


def check_free() -> None:
    """Raises `ClusterError` if this process has already joined a group."""
    if _joined:
        raise ClusterError(
            "This worker has already joined a cluster, and MLX can join only once per process.",
            "Restart the worker, then load the model again.",
        )


def join(backend: str, rank: int, places: Sequence[Place]) -> mx.distributed.Group:
    """Join the group of `places` as `rank`. Waits some seconds for the others. Raises `ClusterError`."""
    global _joined
    check_free()
    _joined = True
    with tempfile.TemporaryDirectory() as folder:
        given = {"MLX_RANK": str(rank), **_environment(backend, places, Path(folder))}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            with _bounded():
                group = mx.distributed.init(strict=True, backend=backend)
        except RuntimeError as error:
            raise ClusterError(
                f"The machines could not be connected with {backend}: {error}.",
                "Check their tensor addresses, and that no other program uses them.",
            ) from error
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
    if (group.rank(), group.size()) != (rank, len(places)):
        raise ClusterError(
            f"MLX joined {group.size()} machines, this one as number {group.rank()}; it should have joined"
            f" {len(places)}, this one as number {rank}."
        )
    return group


@contextmanager
def _bounded() -> Iterator[None]:
    """Limits the time of waiting within the block; at the limit, the process prints its stack and exits."""

    def ring(number: int, frame: object) -> None:
        """Alarm handler that interrupts a pending call."""

    print(f"Joining other machines; without an answer this ends after {_JOIN_S:.0f} s.", file=sys.stderr)
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, _JOIN_S, 1.0)
    faulthandler.dump_traceback_later(_JOIN_S + _GRACE_S, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _environment(backend: str, places: Sequence[Place], folder: Path) -> dict[str, str]:
    file = folder / "places.json"
    if backend == "jaccl":
        file.write_text(json.dumps([[device or None for device in place.rdma] for place in places]))
        return {"MLX_IBV_DEVICES": str(file), "MLX_JACCL_COORDINATOR": _resolved(places[0].tensors)}
    file.write_text(json.dumps([[_resolved(place.tensors)] for place in places]))
    return {"MLX_HOSTFILE": str(file)}


def _resolved(address: str) -> str:
    """`address` with the host name resolved, because MLX accepts only numeric addresses."""
    host, _, port = address.rpartition(":")
    try:
        return f"{socket.gethostbyname(host)}:{port}"
    except OSError as error:
        raise ClusterError(f"Unknown host “{host}” ({error}).") from None
