"""Rules for restarting a model that ran over several machines. Pure.

A new worker first checks which machines are available (`Link.trying`), then loads over those that can take
part. If one cannot, the remaining ones are checked again, because not every number of machines divides every
model. With none left the model is loaded on this machine alone; if it does not fit, that load reports it.
`Link.missing` lists the excluded machines and the reasons until the load ends.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from app.session.cluster import of_those
from app.session.turn.effects import Effect, LoadStarted, Missing, OutOfBand, Send
from app.session.turn.link_state import Link, Transition
from app.session.worker import strings
from core.events import CheckMachines, Failed, LoadModel, MachinesChecked
from core.settings.cluster import Cluster


def begin(link: Link) -> Transition:
    """Load the model in a new worker, or check the machines first."""
    if link.cluster is None or not link.cluster.machines:
        return Transition(link, (LoadStarted(link.model, "", None), Send(LoadModel(link.model))))
    return _try(link, link.cluster)


def is_answer(link: Link, given: Any) -> bool:
    """Whether `given` is the result of the check."""
    return (
        link.trying is not None
        and isinstance(given, MachinesChecked | Failed)
        and given.request == _request(link.trying)
    )


def on_checked(link: Link, given: MachinesChecked | Failed) -> Transition:
    """Load over the available machines, check fewer, or load on this machine alone."""
    trying = link.trying
    assert trying is not None
    if isinstance(given, Failed):
        why = f"{given.message} {given.hint}".strip()
        return _alone(link, tuple(Missing(each.name, why) for each in trying.machines))
    # The first check covers all machines; a later one would hide the problems of the excluded ones.
    shown: tuple[Effect, ...] = (OutOfBand(given),) if trying == link.cluster else ()
    if given.runs:
        after = replace(link, trying=None)
        return Transition(after, (*shown, Send(LoadModel(link.model, trying))))
    wrong = {each.name: each.problem for each in given.machines[1:] if each.problem}
    if not wrong:
        # The others have no problem, but the model cannot be divided by their number: one fewer may work.
        own = [each.problem for each in given.machines[:1] if each.problem]
        wrong = {trying.machines[-1].name: " ".join((*own, *given.problems))}
    missing = tuple(Missing(name, why) for name, why in wrong.items())
    fewer = of_those(trying, {each.name for each in trying.machines} - wrong.keys())
    if not fewer.machines:
        return _alone(link, missing, *shown)
    return _try(replace(link, missing=(*link.missing, *missing)), fewer, *shown)


def _try(link: Link, cluster: Cluster, *effects: Effect) -> Transition:
    started = LoadStarted(link.model, strings.asking_machines(len(cluster.machines)), None)
    command = CheckMachines(_request(cluster), cluster, link.model)
    return Transition(replace(link, trying=cluster), (*effects, started, Send(command)))


def _alone(link: Link, missing: tuple[Missing, ...], *effects: Effect) -> Transition:
    after = replace(link, trying=None, missing=(*link.missing, *missing))
    return Transition(after, (*effects, Send(LoadModel(link.model))))


def _request(cluster: Cluster) -> str:
    return f"check-{len(cluster.machines)}"
