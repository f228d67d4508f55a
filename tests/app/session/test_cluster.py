"""The list of machines as it is edited: names stay different, devices stay with their machines."""

from __future__ import annotations

import pytest

from app.session.cluster import added, changed, free_name, machine_with, of_those, with_value, without
from core.errors import SettingError
from core.settings.cluster import Cluster, Machine

A = Machine("a", "10.0.0.2", rdma=("a0", "", "a2", "a3"))
B = Machine("b", "10.0.0.3", rdma=("b0", "b1", "", "b3"))
C = Machine("c", "10.0.0.4", rdma=("c0", "c1", "c2", ""))
ALL = Cluster((A, B, C), rdma=("", "h1", "h2", "h3"), deadline_s=12.0)


def test_a_machine_takes_its_place_in_everybody_s_devices_with_it() -> None:
    assert without(ALL, "b") == Cluster(
        (Machine("a", "10.0.0.2", rdma=("a0", "", "a3")), Machine("c", "10.0.0.4", rdma=("c0", "c1", ""))),
        rdma=("", "h1", "h3"),
        deadline_s=12.0,
    )


def test_too_few_devices_are_no_reason_to_fail() -> None:
    short = Cluster((Machine("a", "x", rdma=("a0",)), Machine("b", "y")), rdma=("",))
    assert of_those(short, {"b"}) == Cluster((Machine("b", "y"),), rdma=("",))
    assert of_those(short, ()) == Cluster((), rdma=("",))


def test_a_name_is_given_once() -> None:
    with pytest.raises(SettingError, match=r"My list has two machines called “a”\. Give each"):
        added(ALL, Machine("a", "elsewhere"), "My list")
    with pytest.raises(SettingError, match="two machines called “c”"):
        changed(ALL, "b", machine_with(B, "machine.name", "c"), "My list")
    assert changed(ALL, "b", machine_with(B, "machine.name", "d"), "My list").machines[1].name == "d"


def test_a_free_name_is_free() -> None:
    assert free_name(Cluster()) == "machine 2"
    taken = Cluster((Machine("machine 3", "x"), Machine("machine 2", "y")))
    assert free_name(taken) == "machine 4"


def test_what_is_not_allowed_says_what_is() -> None:
    with pytest.raises(SettingError, match=r"machine\.address \(Address\).*1 to 256 characters"):
        machine_with(A, "machine.address", "")
    with pytest.raises(SettingError, match=r"from 1 to 600 s"):
        with_value(ALL, "cluster.deadline_s", 0.5)
    assert with_value(ALL, "cluster.backend", "ring").backend == "ring"
    assert machine_with(A, "machine.rdma", ("x", "")).rdma == ("x", "")
