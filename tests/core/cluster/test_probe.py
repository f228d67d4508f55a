"""Addresses for tensors that are wrong are found before anything is loaded, and named with both machines."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.cluster import this_machine as probe
from core.cluster.loading import ClusterSetup
from core.cluster.this_machine import Probe, peers
from core.cluster.wire import Connected
from core.events import MachinesChecked
from core.settings.cluster import Cluster
from tests.core.cluster.machines import free_port, machines
from tests.core.toy import write_toy_model

# Of the documentation (RFC 5737): on no machine.
_NOWHERE = "192.0.2.7:9"


def _tried(backend: str, addresses: list[str]) -> list[Connected]:
    probes = [Probe(backend, rank, addresses) for rank in range(len(addresses))]
    found: dict[int, Connected] = {}

    def one(rank: int) -> None:
        found[rank] = probes[rank].connect()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(probes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in range(len(probes))]


def test_whom_each_machine_connects_to() -> None:
    assert [peers("ring", rank, 4) for rank in range(4)] == [(1,), (2,), (3,), (0,)]
    assert [peers("jaccl", rank, 3) for rank in range(3)] == [(), (0,), (0,)]


@pytest.mark.parametrize("backend", ["ring", "jaccl"])
@pytest.mark.parametrize("count", [2, 4])
def test_machines_that_reach_each_other_leave_their_addresses_free(backend: str, count: int) -> None:
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(count)]
    assert _tried(backend, addresses) == [Connected()] * count
    for address in addresses:
        # As MLX's own listening: it may not find a connection of ours in its way.
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", int(address.rpartition(":")[2])))


def test_who_reaches_another_machine_at_an_address_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_ARRIVE_S", 0.3)
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        probes = [
            Probe("ring", 0, [addresses[0], f"127.0.0.1:{stranger.getsockname()[1]}"]),
            Probe("ring", 1, addresses),
        ]
        assert probes[0].connect() == Connected((), 1)  # the other one has not tried yet
        assert probes[1].connect() == Connected(((0, "Connection refused"),), 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda c, taken: replace(c, here=taken),
            "cannot listen at {taken}, its address for tensors: Address",
        ),
        (
            lambda c, taken: replace(c, machines=(replace(c.machines[0], tensors=taken),)),
            "machine 1 cannot listen at {taken}, its address for tensors: Address already in use",
        ),
        (
            lambda c, taken: replace(c, machines=(replace(c.machines[0], tensors=_NOWHERE),)),
            f"machine 1 cannot listen at {_NOWHERE}, its address for tensors: Cannot assign",
        ),
    ],
    ids=["here", "taken", "nowhere"],
)
def test_a_check_names_the_address_that_is_wrong(
    tmp_path: Path, change: Callable[[Cluster, str], Cluster], said: str
) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder)
    with machines(tmp_path, 1) as cluster, socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        assert _checked(cluster, folder).runs
        checked = _checked(change(cluster, taken), folder)
        assert not checked.runs
        assert said.format(taken=taken) in " ".join(each.problem for each in checked.machines)
        assert _checked(cluster, folder).runs  # nothing is left behind


def _checked(cluster: Cluster, folder: Path) -> MachinesChecked:
    setup = ClusterSetup(cluster, str(folder))
    setup.close()
    return setup.checked()
