"""One model over several machines: what is asked of them beforehand, and what is heard of them.

A model is loaded over a cluster by `load_model` with its `cluster`. Then `machine_figures` come about once
a second while something is done. Any doubt about a machine ends all: the worker says `cluster_ended` and
exits, so `cluster_ended` is followed by its exit and by nothing else.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.events.wire import Wire
from core.settings.cluster import Cluster

# Why a cluster ended: a machine or its process is gone; it did not do an operation within its deadline;
# something failed there; its cache is not where it should be.
ClusterEnd = Literal["lost", "deadline", "failed", "disagrees"]


class CheckMachines(Wire, frozen=True):
    """See what is there, and what would keep `model` from running over it. Nothing is loaded.

    Without a model only the machines are looked at.
    """

    request: str
    cluster: Cluster
    model: str = ""


class MachineSeen(Struct, frozen=True):
    """One machine; the first one is this. `problem` is empty if nothing is wrong with it.

    Of a machine that was not reached all else is empty. `busy`: it follows somebody already. `need_bytes`:
    its part of the model, with a short context; 0 without a model.
    """

    name: str
    address: str
    problem: str = ""
    hint: str = ""
    reached: bool = False
    busy: bool = False
    chip: str = ""
    memory_bytes: int = 0
    limit_bytes: int = 0
    need_bytes: int = 0
    version: str = ""
    mlx: str = ""
    mlx_lm: str = ""
    backends: tuple[str, ...] = ()


class MachinesChecked(Wire, frozen=True):
    """`runs`: nothing is missing. `backend` and `split` are what would be used.

    `problems` are those that belong to no single machine, in words.
    """

    request: str
    machines: tuple[MachineSeen, ...]
    runs: bool
    backend: str = ""
    split: str = ""
    problems: tuple[str, ...] = ()


class MachineUse(Struct, frozen=True):
    """A machine at work. `step_s`: how long its part of the last operation took; 0 if there was none yet."""

    name: str
    memory_bytes: int
    limit_bytes: int
    step_s: float


class MachineFigures(Wire, frozen=True):
    """All machines of the loaded model, in the order of their ranks; this one first."""

    machines: tuple[MachineUse, ...]


class ClusterEnded(Wire, frozen=True):
    """`machine` is the one because of which; empty if it is this one. The worker exits after it."""

    machine: str
    end: ClusterEnd
    message: str
    hint: str = ""


ClusterCommand = CheckMachines
ClusterEvent = MachinesChecked | MachineFigures | ClusterEnded
