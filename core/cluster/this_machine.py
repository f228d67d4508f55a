"""This machine in a cluster: its description and model files, the connection test, joining MLX's group.

Imports MLX and the model's code only when they are needed: a machine is checked before anything else is
loaded, and a follower prepares its process for MLX first.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from core.cluster.wire import Connected, Place, Seen, host_and_port
from core.errors import ClusterError, ModelError
from core.models.places import find
from core.models.starter import STARTER, ensure_starter
from core.settings.cluster import FOLLOW_PORT
from core.system.files import load_json, save_json
from core.system.paths import cache_dir

if TYPE_CHECKING:
    import mlx.core as mx


def seen(busy: bool = False) -> Seen:
    """The description of this machine without a model."""
    from core.models.memory import machine

    here = machine()
    return Seen(
        version("draftlight"),
        version("mlx"),
        version("mlx-lm"),
        chip(),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        here.limit_bytes,
        backends(),
        here.expands,
        busy,
    )


def folder_of(model: str, folder: str = "") -> Path:
    """The folder of `model` on this machine, or `folder` if given. Raises `ModelError`."""
    if folder:
        return Path(folder).expanduser()
    if model == STARTER:
        return ensure_starter(lambda stage, fraction: None)
    if found := find(model):
        return found
    raise ModelError(
        f"It has no model “{model}”.",
        f"Copy the model's folder there, or run: draftlight models download {model}",
    )


def digest_of(model: str, folder: str = "") -> str:
    """Digest of the model's files on this machine. Raises `ModelError`."""
    return model_digest(folder_of(model, folder))


def chip() -> str:
    """Name of the processor."""
    if platform.system() == "Darwin":
        found = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            check=False,
        )
        return found.stdout.strip() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


# ---- digest of a model's files
#
# SHA-256 over the names and contents of config and weights, so that machines can compare their copies.
# Hashes are cached by each file's size and times. No MLX.


_PATTERNS = ("config.json", "model*.safetensors", "model.safetensors.index.json")


def model_digest(folder: Path) -> str:
    """Hexadecimal. Raises `ModelError` if a file cannot be read."""
    files = sorted({path for pattern in _PATTERNS for path in folder.glob(pattern)})
    known = load_json(_path(), dict[str, str]) or {}
    total = hashlib.sha256()
    for path in files:
        try:
            status = path.stat()
            key = f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
            if key not in known:
                with path.open("rb") as file:
                    known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}.", "Download it again.") from error
        total.update(f"{path.name} {known[key]}\n".encode())
    save_json(_path(), known)
    return total.hexdigest()


def _path() -> Path:
    return cache_dir() / "digests.json"


# ---- connection test of the tensor addresses, before MLX joins the machines
#
# MLX's join does not name the machine that failed, or retries forever. Each machine therefore listens on
# its tensor address and connects to those that MLX will connect it to. No MLX.


TENSOR_PORT = FOLLOW_PORT + 1
CONNECT_S = 5.0
# Another machine may start to connect somewhat later and take as long.
_ARRIVE_S = CONNECT_S + 1.0


def peers(backend: str, rank: int, size: int) -> tuple[int, ...]:
    """Ranks that MLX connects `rank` to: in a ring the next one, with jaccl all others."""
    if backend == "jaccl":
        return (0,) if rank else ()
    return ((rank + 1) % size,)


class Probe:
    """Tests connections from machine `rank`, and listens on its address. `addresses`: for tensors, by rank.

    Raises `OSError` if it cannot listen.
    """

    def __init__(self, backend: str, rank: int, addresses: Sequence[str]) -> None:
        size = len(addresses)
        self._addresses = addresses
        self._to = peers(backend, rank, size)
        self._expected = sum(rank in peers(backend, other, size) for other in range(size))
        self._listener: socket.socket | None = None
        if self._expected:
            self._listener = socket.create_server(
                host_and_port(addresses[rank], TENSOR_PORT), backlog=self._expected
            )

    def connect(self) -> Connected:
        """Connects to the peers once all listen, then stops listening. Takes some seconds at most."""
        try:
            unreached = [(rank, why) for rank in self._to if (why := self._why_not(rank))]
            return Connected(tuple(unreached), self._missing())
        finally:
            self.close()

    def close(self) -> None:
        """Closes the listening socket."""
        if self._listener is not None:
            self._listener.close()

    def _why_not(self, rank: int) -> str:
        try:
            address = host_and_port(self._addresses[rank], TENSOR_PORT)
            socket.create_connection(address, CONNECT_S).close()
        except OSError as error:
            return words_of(error)
        return ""

    def _missing(self) -> int:
        until = time.monotonic() + _ARRIVE_S
        for arrived in range(self._expected):
            assert self._listener is not None
            self._listener.settimeout(max(0.0, until - time.monotonic()))
            try:
                connection, _ = self._listener.accept()
            except (TimeoutError, BlockingIOError):
                return self._expected - arrived
            with connection:
                connection.settimeout(CONNECT_S)
                # The other side closes first, so that this address has no connection in TIME_WAIT.
                while connection.recv(64):
                    pass
        return 0


def words_of(error: BaseException) -> str:
    """The message of an `OSError` without its number."""
    return str(getattr(error, "strerror", "") or error)


# ---- joining MLX's distributed group, once per process because MLX keeps the group
#
# MLX reads its configuration from the environment, which is set for the length of the call. While MLX waits
# for the other machines it holds Python's lock, so no other thread can end the wait: an alarm interrupts a
# pending connection, and if MLX retries, `faulthandler`'s watchdog ends the process. Main thread.


_BACKENDS = ("ring", "jaccl")
# All machines are ready, so joining takes a second or two.
_JOIN_S = 15.0
_GRACE_S = 5.0
_joined = False


def backends() -> tuple[str, ...]:
    """The backends that MLX supports on this machine."""
    import mlx.core as mx

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
    import mlx.core as mx

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
