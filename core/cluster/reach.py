"""Reach: the leader's side of trying out the addresses for tensors; says what is wrong with which machine."""

from __future__ import annotations

from collections.abc import Sequence

from core.cluster.leader import Follower
from core.cluster.line import LineEnd
from core.cluster.machine.probe import CONNECT_S, Probe, words_of
from core.cluster.messages import Connect, Connected, Listen, Listening
from core.errors import ClusterError

# Connecting, and waiting for others that do.
_REACH_S = 4 * CONNECT_S


def unreached(
    followers: Sequence[Follower], names: Sequence[str], addresses: Sequence[str], backend: str
) -> dict[str, str]:
    """What is wrong, in words, by the name of the machine that found it; empty: all is well.

    `names` and `addresses` (for tensors) are by rank, this machine's first. Nothing listens there afterwards.
    """
    try:
        own = Probe(backend, 0, addresses)
    except (OSError, ClusterError) as error:
        return {names[0]: _cannot_listen(names[0], addresses[0], words_of(error))}
    found: dict[str, str] = {}
    try:
        for rank, follower in enumerate(followers, 1):
            follower.tell(Listen(backend, rank, tuple(addresses)))
            if problem := follower.wait(Listening, _REACH_S).problem:
                found[follower.name] = _cannot_listen(follower.name, addresses[rank], problem)
        if found:
            return found
        for follower in followers:
            follower.tell(Connect())
        connected: list[Connected] = [own.connect()]
        connected += [follower.wait(Connected, _REACH_S) for follower in followers]
    except (ClusterError, LineEnd) as error:
        return {names[0]: words_of(error)}
    finally:
        own.close()
    failed = {
        name: " ".join(
            f"{name} does not reach {names[rank]} at {addresses[rank]}: {why}."
            for rank, why in each.unreached
        )
        for name, each in zip(names, connected, strict=True)
        if each.unreached
    }
    return failed or {
        name: f"Nobody reached {name} at {address}: another machine answers there."
        for name, address, each in zip(names, addresses, connected, strict=True)
        if each.missing
    }


def _cannot_listen(name: str, address: str, why: str) -> str:
    return f"{name} cannot listen at {address}, its address for tensors: {why}."
