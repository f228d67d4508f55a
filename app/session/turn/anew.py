"""The rules for starting anew a model that ran over several machines. Pure.

A new worker looks first which of the machines are there (`Link.trying`), then loads over those that can;
where one cannot, the others are looked at again, for not every number of machines divides every model. With
none left the model is loaded here alone, and if it does not fit here, that load says so. `Link.missing` are
the machines that were left out, and why, until the load has ended.
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
    """The worker is there: load, or look at the machines first."""
    if link.cluster is None or not link.cluster.machines:
        return Transition(link, (LoadStarted(link.model, "", None), Send(LoadModel(link.model))))
    return _try(link, link.cluster)


def is_answer(link: Link, given: Any) -> bool:
    """Whether `given` says which machines are there."""
    return (
        link.trying is not None
        and isinstance(given, MachinesChecked | Failed)
        and given.request == _request(link.trying)
    )


def hear(link: Link, given: MachinesChecked | Failed) -> Transition:
    """Load over those machines, look at fewer, or load here alone."""
    trying = link.trying
    assert trying is not None
    if isinstance(given, Failed):
        why = f"{given.message} {given.hint}".strip()
        return _alone(link, tuple(Missing(each.name, why) for each in trying.machines))
    # The first look has all of them; a later one would hide what is wrong with those left out.
    shown: tuple[Effect, ...] = (OutOfBand(given),) if trying == link.cluster else ()
    if given.runs:
        after = replace(link, trying=None)
        return Transition(after, (*shown, Send(LoadModel(link.model, trying))))
    wrong = {each.name: each.problem for each in given.machines[1:] if each.problem}
    if not wrong:
        # The others are well, but so many cannot share this model: one fewer may.
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
    return f"anew-{len(cluster.machines)}"
