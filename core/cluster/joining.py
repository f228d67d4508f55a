"""Joining: this process becomes a rank of MLX's distributed group. Once in its life: MLX keeps the group.

The environment is how MLX is told; what is set is set for the length of the call. Main thread.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx

from core.cluster.messages import Place
from core.errors import ClusterError

_BACKENDS = ("ring", "jaccl")
_joined = False


def backends() -> tuple[str, ...]:
    """Those that MLX has here."""
    return tuple(each for each in _BACKENDS if mx.distributed.is_available(backend=each))


def check_free() -> None:
    """Raises `ClusterError` if this process was a rank before."""
    if _joined:
        raise ClusterError(
            "This worker has run a model over several machines already, and MLX joins them once.",
            "Restart the worker, then load the model again.",
        )


def join(backend: str, rank: int, places: Sequence[Place]) -> mx.distributed.Group:
    """Be `rank` among `places`; waits until all have come. Raises `ClusterError`."""
    global _joined
    check_free()
    _joined = True
    with tempfile.TemporaryDirectory() as folder:
        given = {"MLX_RANK": str(rank), **_environment(backend, places, Path(folder))}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            group = mx.distributed.init(strict=True, backend=backend)
        except RuntimeError as error:
            raise ClusterError(
                f"The machines could not be joined by {backend}: {error}.",
                "See whether their addresses for tensors are right and nothing else listens there.",
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


def _environment(backend: str, places: Sequence[Place], folder: Path) -> dict[str, str]:
    file = folder / "places.json"
    if backend == "jaccl":
        file.write_text(json.dumps([[device or None for device in place.rdma] for place in places]))
        return {"MLX_IBV_DEVICES": str(file), "MLX_JACCL_COORDINATOR": _resolved(places[0].tensors)}
    file.write_text(json.dumps([[_resolved(place.tensors)] for place in places]))
    return {"MLX_HOSTFILE": str(file)}


def _resolved(address: str) -> str:
    """MLX takes numbers, not names."""
    host, _, port = address.rpartition(":")
    try:
        return f"{socket.gethostbyname(host)}:{port}"
    except OSError as error:
        raise ClusterError(f"“{host}” is no machine that is known here ({error}).") from None
