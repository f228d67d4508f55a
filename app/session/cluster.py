"""Clusters: edits of the list of machines, and how many machines a model needs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from core.events import MachinesChecked, ModelEntry
from core.events.catalogue import Fit, fit_of
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


# Of a context with which a model is still of use, as the check of the machines takes it.
_CONTEXT_TOKENS = 2048


class Spread(Struct, frozen=True):
    """`machines` is the fewest that hold the model, this one included; 0: all of them are too few.

    `need_bytes` is all of it, `each_bytes` what each of so many holds, of all where they are too few.
    """

    machines: int
    of: int
    need_bytes: int
    each_bytes: int
    fit: Fit


def limits_of(here_bytes: int, checked: MachinesChecked | None) -> tuple[int, ...]:
    """What each machine that was reached gives, this one first; `here_bytes` where nothing was looked at."""
    if checked is None or not checked.machines:
        return (here_bytes,) if here_bytes else ()
    first, *others = checked.machines
    reached = (each.limit_bytes for each in others if each.reached and not each.busy)
    return (first.limit_bytes or here_bytes, *reached)


def spread_of(entry: ModelEntry, limits: Sequence[int]) -> Spread | None:
    """Of a model whose memory is known; `limits` as `limits_of` gives them."""
    if not entry.need.weights or not limits:
        return None
    total = entry.need.total_at(min(_CONTEXT_TOKENS, entry.context_tokens or _CONTEXT_TOKENS))
    for count in range(1, len(limits) + 1):
        each = -(-total // count)
        fit = fit_of(each, min(limits[:count]))
        if fit != "too-large":
            return Spread(count, len(limits), total, each, fit)
    return Spread(0, len(limits), total, -(-total // len(limits)), "too-large")
