"""Editing: the list of machines as a person changes it. Pure.

Machines are told apart by their names. The devices of jaccl are named by rank, so with a machine its place
in everybody's list of devices goes, too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from core.settings import assign, read
from core.settings.cluster import Cluster, ClusterForm, Machine, check_names

# A new machine's name, unless that one is taken.
_NAME = "machine"


def machine_of(cluster: Cluster, name: str) -> Machine | None:
    """The one of that name."""
    return next((each for each in cluster.machines if each.name == name), None)


def free_name(cluster: Cluster) -> str:
    """What a machine that comes to those of `cluster` may be called."""
    taken = {machine.name for machine in cluster.machines}
    return next(name for number in range(2, len(taken) + 3) if (name := f"{_NAME} {number}") not in taken)


def added(cluster: Cluster, machine: Machine, whose: str) -> Cluster:
    """With `machine` at the end. Raises `SettingError` if its name is taken; `whose` list it is."""
    after = replace(cluster, machines=(*cluster.machines, machine))
    check_names(after, whose)
    return after


def changed(cluster: Cluster, name: str, machine: Machine, whose: str) -> Cluster:
    """With `machine` in the place of the one called `name`. Raises `SettingError` as `added` does."""
    machines = tuple(machine if each.name == name else each for each in cluster.machines)
    after = replace(cluster, machines=machines)
    check_names(after, whose)
    return after


def with_value(cluster: Cluster, key: str, value: Any) -> Cluster:
    """With the setting `key` of `ClusterForm`'s group `cluster`. Raises `SettingError`."""
    return assign(ClusterForm(_NOBODY, cluster), key, value).cluster


def machine_with(machine: Machine, key: str, value: Any) -> Machine:
    """With the setting `key` of `ClusterForm`'s group `machine`. Raises `SettingError`."""
    return assign(ClusterForm(machine), key, value).machine


def value_of(machine: Machine, cluster: Cluster, key: str) -> Any:
    """What stands there for the setting `key` of `ClusterForm`."""
    return read(ClusterForm(machine, cluster), key)


def of_those(cluster: Cluster, names: Collection[str]) -> Cluster:
    """With the machines of these names alone, each still with its devices towards the others."""
    ranks = [0, *(rank for rank, each in enumerate(cluster.machines, 1) if each.name in names)]

    def kept(devices: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(devices[rank] for rank in ranks if rank < len(devices))

    machines = tuple(replace(each, rdma=kept(each.rdma)) for each in cluster.machines if each.name in names)
    return replace(cluster, machines=machines, rdma=kept(cluster.rdma))


def without(cluster: Cluster, name: str) -> Cluster:
    """With all but the machine of that name."""
    return of_those(cluster, {each.name for each in cluster.machines if each.name != name})


# Only for reading and writing the other group; it is never in a list.
_NOBODY = Machine("nobody", "nowhere")
