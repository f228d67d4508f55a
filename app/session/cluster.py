"""Clusters: edits of the list of machines, and how many machines a model needs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.events import MachinesChecked, ModelEntry
from core.events.models import Fit, fit_of
from core.settings import assign, read
from core.settings.cluster import Cluster, ClusterForm, Machine, check_names

# The name of a new machine, unless it is taken.
_NAME = "machine"


def machine_of(cluster: Cluster, name: str) -> Machine | None:
    return next((each for each in cluster.machines if each.name == name), None)


def free_name(cluster: Cluster) -> str:
    taken = {machine.name for machine in cluster.machines}
    return next(name for number in range(2, len(taken) + 3) if (name := f"{_NAME} {number}") not in taken)


def added(cluster: Cluster, machine: Machine, whose: str) -> Cluster:
    """Returns the cluster with `machine`. Raises `SettingError` if `whose` list has its name already."""
    after = replace(cluster, machines=(*cluster.machines, machine))
    check_names(after, whose)
    return after


def changed(cluster: Cluster, name: str, machine: Machine, whose: str) -> Cluster:
    """Returns the cluster with the machine `name` replaced. Raises `SettingError` as `added`."""
    machines = tuple(machine if each.name == name else each for each in cluster.machines)
    after = replace(cluster, machines=machines)
    check_names(after, whose)
    return after


def with_value(cluster: Cluster, key: str, value: Any) -> Cluster:
    """Returns the cluster with a setting of `ClusterForm`'s group `cluster`. Raises `SettingError`."""
    return assign(ClusterForm(_NOBODY, cluster), key, value).cluster


def machine_with(machine: Machine, key: str, value: Any) -> Machine:
    """Returns the machine with a setting of `ClusterForm`'s group `machine`. Raises `SettingError`."""
    return assign(ClusterForm(machine), key, value).machine


def value_of(machine: Machine, cluster: Cluster, key: str) -> Any:
    """Returns the value of the setting `key` of `ClusterForm`."""
    return read(ClusterForm(machine, cluster), key)


def of_those(cluster: Cluster, names: Collection[str]) -> Cluster:
    """Returns the cluster with the machines `names` alone, and the RDMA devices between them."""
    ranks = [0, *(rank for rank, each in enumerate(cluster.machines, 1) if each.name in names)]

    def kept(devices: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(devices[rank] for rank in ranks if rank < len(devices))

    machines = tuple(replace(each, rdma=kept(each.rdma)) for each in cluster.machines if each.name in names)
    return replace(cluster, machines=machines, rdma=kept(cluster.rdma))


def without(cluster: Cluster, name: str) -> Cluster:
    return of_those(cluster, {each.name for each in cluster.machines if each.name != name})


# Only for reading and writing the other group; never in a list.
_NOBODY = Machine("nobody", "nowhere")


# For a useful context length, as in the check of the machines.
_CONTEXT_TOKENS = 2048


class Spread(Struct, frozen=True):
    """The least number of `machines`, this one included, that hold the model; 0 if all are too few.

    `need_bytes` is the whole model, `each_bytes` the share of each of `machines`, or of all if they are too
    few.
    """

    machines: int
    of: int
    need_bytes: int
    each_bytes: int
    fit: Fit


def limits_of(here_bytes: int, checked: MachinesChecked | None) -> tuple[int, ...]:
    """Returns the memory limit of each reached machine, this one first; `here_bytes` without a check."""
    if checked is None or not checked.machines:
        return (here_bytes,) if here_bytes else ()
    first, *others = checked.machines
    reached = (each.limit_bytes for each in others if each.reached and not each.busy)
    return (first.limit_bytes or here_bytes, *reached)


def spread_of(entry: ModelEntry, limits: Sequence[int]) -> Spread | None:
    """Returns the spread of a model with a known memory need; `limits` from `limits_of`."""
    if not entry.need.weights or not limits:
        return None
    total = entry.need.total_at(min(_CONTEXT_TOKENS, entry.context_tokens or _CONTEXT_TOKENS))
    for count in range(1, len(limits) + 1):
        each = -(-total // count)
        fit = fit_of(each, min(limits[:count]))
        if fit != "too-large":
            return Spread(count, len(limits), total, each, fit)
    return Spread(0, len(limits), total, -(-total // len(limits)), "too-large")
