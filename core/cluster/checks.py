"""Checks: what would keep a model from running over these machines, found before anything is loaded. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from core.cluster.messages import Seen
from core.cluster.splitting import choose
from core.events import MemoryNeed
from core.models.folder import gigabytes
from core.settings.cluster import Cluster

# Of a context with which a model is still of use.
_CONTEXT_TOKENS = 2048


class Plan(Struct, frozen=True):
    """`problems` are of no machine in particular, `by_machine` those of one; both empty: it runs."""

    backend: str
    split: str
    problems: tuple[str, ...]
    by_machine: dict[str, str]
    need_bytes: int = 0

    @property
    def said(self) -> str:
        """All of them, in words."""
        return " ".join((*self.by_machine.values(), *self.problems))


class ModelFacts(Struct, frozen=True):
    """What the leader knows of the model. `need`: of all of it, on one machine."""

    name: str
    config: dict[str, Any]
    digest: str
    need: MemoryNeed


def plan(cluster: Cluster, here: str, machines: Mapping[str, Seen], model: ModelFacts | None) -> Plan:
    """`machines` by name, that of `here` among them; those that were not reached are not in it."""
    own = machines[here]
    size = cluster.size
    problems: list[str] = []
    backend = _backend(cluster, own)
    split: str = cluster.split
    need_bytes = 0
    if not cluster.machines:
        problems.append("No other machine is named.")
    if model is not None:
        split, against = choose(cluster.split, model.config, size)
        if against:
            problems.append(f"{model.name} cannot run over {size} machines: {against}.")
        need_bytes = -(-model.need.total_at(_CONTEXT_TOKENS) // size)
    if backend == "jaccl" and any(len(each) != size for each in _rdma(cluster)):
        problems.append(f"jaccl needs {size} devices named for each of the {size} machines.")
    by_machine = {
        name: problem
        for name, seen in machines.items()
        if (problem := _problem(name, seen, here, own, backend, model, need_bytes))
    }
    return Plan(backend, split, tuple(problems), by_machine, need_bytes)


def _problem(
    name: str, seen: Seen, here: str, own: Seen, backend: str, model: ModelFacts | None, need_bytes: int
) -> str:
    if seen.busy:
        return f"{name} follows somebody already."
    for what, its, ours in (
        ("Draftlight", seen.version, own.version),
        ("mlx", seen.mlx, own.mlx),
        ("mlx-lm", seen.mlx_lm, own.mlx_lm),
    ):
        if its != ours:
            return f"{name} has {what} {its}, and {here} has {what} {ours}: they must be the same."
    if backend not in seen.backends:
        return f"{name} has no {backend} in its MLX, only {', '.join(seen.backends) or 'nothing'}."
    if seen.expands != own.expands:
        gpu, cpu = (here, name) if seen.expands else (name, here)
        return f"{gpu} computes on its GPU and {cpu} on its CPU: their numbers would differ."
    if model is None:
        return ""
    if seen.problem:
        return f"{name}: {seen.problem}"
    if seen.digest != model.digest:
        return (
            f"The files of {model.name} on {name} are not those on {here}"
            f" (SHA-256 {seen.digest[:12]}… there, {model.digest[:12]}… here): copy the folder again."
        )
    if need_bytes > seen.limit_bytes:
        return (
            f"{name} would hold {gigabytes(need_bytes)} GB of {model.name}, and gives it"
            f" {gigabytes(seen.limit_bytes)} GB."
        )
    return ""


def _backend(cluster: Cluster, own: Seen) -> str:
    if cluster.backend != "auto":
        return cluster.backend
    named = all(_rdma(cluster))
    return "jaccl" if named and "jaccl" in own.backends else "ring"


def _rdma(cluster: Cluster) -> list[tuple[str, ...]]:
    return [cluster.rdma, *(machine.rdma for machine in cluster.machines)]
