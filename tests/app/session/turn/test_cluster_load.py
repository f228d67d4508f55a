"""A model that ran over several machines is restarted: over all, over fewer, here alone, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from app.session.turn import effects as fx
from app.session.turn.intents import Load, Restart
from app.session.turn.link_state import Link, Phase
from app.session.turn.turn import Input, advance
from core.events import (
    CheckMachines,
    ClusterEnded,
    Failed,
    LoadModel,
    MachinesChecked,
    MachineSeen,
    ModelLoaded,
)
from core.settings.cluster import Cluster, Machine
from tests.app.session.words import HELLO, INFO, KILLED, LOADED, failed

A, B, C = (Machine(name, f"10.0.0.{number}") for number, name in enumerate("abc", 2))
TWO, ALL = Cluster((A, B)), Cluster((A, B, C))
OVER = ModelLoaded(replace(INFO, machines=("here", "a", "b", "c")))
ENDED = ClusterEnded("b", "lost", "b is gone.", "See whether it sleeps.")


def run(*inputs: Input, start: Link) -> tuple[Link, list[fx.Effect]]:
    """The state after `inputs`, and all effects on the way."""
    link, effects = start, []
    for given in inputs:
        step = advance(link, given)
        link = step.link
        effects += step.effects
    assert not [one for one in effects if isinstance(one, fx.WindowMistake | fx.WorkerMistake)]
    return link, effects


def sent(effects: list[fx.Effect]) -> list[Any]:
    return [one.command for one in effects if isinstance(one, fx.Send)]


def led(cluster: Cluster = ALL) -> Link:
    """A model at work over the machines of `cluster`."""
    names = ("here", *(each.name for each in cluster.machines))
    loaded = ModelLoaded(replace(INFO, machines=names))
    link, effects = run(HELLO, LOADED, Load("m", cluster), loaded, start=Link("starter"))
    assert sent(effects)[-1] == LoadModel("m", cluster)
    return link


def began(cluster: Cluster = ALL) -> Link:
    """The same after a machine was lost and a click, with the machines asked."""
    link, effects = run(ENDED, KILLED, Restart(), HELLO, start=led(cluster))
    assert sent(effects)[-1] == CheckMachines(f"check-{len(cluster.machines)}", cluster, "m")
    assert link.phase is Phase.LOADING
    return link


def found(cluster: Cluster, *away: str, problems: tuple[str, ...] = ()) -> MachinesChecked:
    """All machines of `cluster` but those `away`."""
    machines = [MachineSeen("here", "")]
    for each in cluster.machines:
        gone = f"{each.name} is away." if each.name in away else ""
        machines.append(MachineSeen(each.name, each.address, gone))
    runs = not away and not problems
    return MachinesChecked(f"check-{len(cluster.machines)}", tuple(machines), runs, problems=problems)


def test_the_end_of_a_cluster_is_told_with_the_death() -> None:
    link, effects = run(ENDED, KILLED, start=led())
    assert [one.ended for one in effects if isinstance(one, fx.WorkerDied)] == [ENDED]
    assert (link.phase, link.model, link.cluster) == (Phase.DEAD, "m", ALL)


def test_all_are_there() -> None:
    link, effects = run(found(ALL), OVER, start=began())
    assert sent(effects) == [LoadModel("m", ALL)]
    assert [one.missing for one in effects if isinstance(one, fx.ModelReady)] == [()]
    assert (link.phase, link.trying, link.cluster) == (Phase.READY, None, ALL)


def test_fewer_are_looked_at_again_and_the_left_out_are_told() -> None:
    fewer = Cluster((A, C))
    link, effects = run(found(ALL, "b"), found(fewer), OVER, start=began())
    assert sent(effects) == [CheckMachines("check-2", fewer, "m"), LoadModel("m", fewer)]
    (ready,) = (one for one in effects if isinstance(one, fx.ModelReady))
    assert ready.missing == (fx.Missing("b", "b is away."),)
    # Shown is what was found of all of them.
    assert [one for one in effects if isinstance(one, MachinesChecked)] == [found(ALL, "b")]
    # The next start asks all of them again.
    assert (link.cluster, link.missing) == (ALL, ())


def test_a_number_that_does_not_divide_is_made_smaller() -> None:
    why = ("M cannot run over 4 machines: its 9 heads do not divide.",)
    _, effects = run(found(ALL, problems=why), found(TWO), OVER, start=began())
    assert sent(effects) == [CheckMachines("check-2", TWO, "m"), LoadModel("m", TWO)]
    (ready,) = (one for one in effects if isinstance(one, fx.ModelReady))
    assert ready.missing == (fx.Missing("c", why[0]),)


def test_here_alone_if_none_is_left() -> None:
    link, effects = run(found(TWO, "a", "b"), LOADED, start=began(TWO))
    assert sent(effects) == [LoadModel("m")]
    (ready,) = (one for one in effects if isinstance(one, fx.ModelReady))
    assert [each.name for each in ready.missing] == ["a", "b"]
    assert link.cluster == TWO


def test_not_at_all_if_it_does_not_fit_here() -> None:
    refused = failed("", "load_model", "bad-model")
    link, effects = run(found(TWO, "a", "b"), refused, start=began(TWO))
    (said,) = (one for one in effects if isinstance(one, fx.LoadFailed))
    assert [each.name for each in said.missing] == ["a", "b"]
    assert (link.phase, link.model, link.cluster, link.missing) == (Phase.NO_MODEL, "m", TWO, ())


def test_machines_that_cannot_be_asked_are_all_left_out() -> None:
    no_secret = Failed(
        "check-3", "check_machines", "request", "bad-key-file", "There is no secret.", "Make one."
    )
    _, effects = run(no_secret, LOADED, start=began())
    assert sent(effects) == [LoadModel("m")]
    (ready,) = (one for one in effects if isinstance(one, fx.ModelReady))
    assert {each.problem for each in ready.missing} == {"There is no secret. Make one."}


def test_what_others_asked_of_the_machines_is_not_taken_for_the_answer() -> None:
    other = replace(found(ALL), request="models-7")
    link, effects = run(other, start=began())
    assert effects == [other]
    assert link == began()


def test_a_worker_that_joined_is_replaced_for_the_next_cluster_only() -> None:
    link, effects = run(Load("other", TWO), start=led())
    assert [type(one) for one in effects] == [fx.RestartWorker]
    assert (link.phase, link.model, link.cluster) == (Phase.STARTING, "other", TWO)
    alone, effects = run(Load("other"), start=led())
    assert sent(effects) == [LoadModel("other")]
    assert alone.cluster is None


@pytest.mark.parametrize("start", [led(), led(TWO)])
def test_a_load_that_is_refused_goes_back_to_the_machines_before(start: Link) -> None:
    link, _ = run(Load("other"), failed("", "load_model", "bad-model"), start=start)
    assert (link.phase, link.model, link.cluster) == (Phase.READY, "m", start.cluster)


def test_a_restart_keeps_the_machines_and_a_load_here_forgets_them() -> None:
    assert run(Restart(), start=led())[0].cluster == ALL
    assert run(Load("m"), LOADED, Restart(), start=led())[0].cluster is None
