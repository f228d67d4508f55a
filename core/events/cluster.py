"""One model on several machines: the check before loading, and figures while it runs.

`load_model` with a `cluster` loads a model on it. `machine_figures` then arrive about once per second while
the model works. Any failure of a machine ends the cluster: the worker sends `cluster_ended` as its last event
and exits.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from core.events.wire import Wire
from core.settings.cluster import Cluster

# Why a cluster ended: a machine or its process was lost; it missed the deadline of an operation; an operation
# failed; its cache differs from the leader's.
ClusterEnd = Literal["lost", "deadline", "failed", "disagrees"]


class CheckMachines(Wire, frozen=True):
    """Checks the machines, and whether `model` could run on them, without loading it.

    Without a model only the machines are checked.
    """

    request: str
    cluster: Cluster
    model: str = ""


class MachineSeen(Struct, frozen=True):
    """One machine; this one is the first. `problem` is empty if the machine is usable.

    If it was not reached, all other fields are empty. `busy`: it already belongs to a cluster. `need_bytes`:
    its part of the model with a short context; 0 without a model.
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
    """`runs`: the model can run. `backend`, `split`: those that would be used.

    `problems`: sentences about the cluster as a whole.
    """

    request: str
    machines: tuple[MachineSeen, ...]
    runs: bool
    backend: str = ""
    split: str = ""
    problems: tuple[str, ...] = ()


class MachineUse(Struct, frozen=True):
    """A machine of the running cluster. `step_s`: time of its part of the last operation; 0 before one."""

    name: str
    memory_bytes: int
    limit_bytes: int
    step_s: float


class MachineFigures(Wire, frozen=True):
    """All machines of the loaded model by rank; this one first."""

    machines: tuple[MachineUse, ...]


class ClusterEnded(Wire, frozen=True):
    """The cluster ended because of `machine`, empty for this one. The worker exits."""

    machine: str
    end: ClusterEnd
    message: str
    hint: str = ""


ClusterCommand = CheckMachines
ClusterEvent = MachinesChecked | MachineFigures | ClusterEnded
