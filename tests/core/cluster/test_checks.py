"""What keeps a model from running over machines is found before anything is loaded, and names both sides."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.cluster.loading import ModelFacts, plan
from core.cluster.shard import abilities, choose, why_not
from core.cluster.wire import Seen, host_and_port
from core.errors import ClusterError
from core.events import MemoryNeed
from core.settings.cluster import Cluster, Machine
from tests.core.architectures import ARCHITECTURES

HERE = Seen("0.1.0", "0.32.4", "0.32.2", "M5 Max", 64 << 30, 48 << 30, ("ring",), False, False, "d" * 64)
CLUSTER = Cluster((Machine("studio", "10.0.0.2"),))
NEED = MemoryNeed(40 << 30, 1 << 10, 0, 0, 0, 1 << 20, 0)
MODEL = ModelFacts("Qwen3-32B", dict(ARCHITECTURES["qwen3"].config), "d" * 64, NEED)


def found(there: Seen, cluster: Cluster = CLUSTER, model: ModelFacts | None = MODEL) -> str:
    return plan(cluster, "desk", {"desk": HERE, "studio": there}, model).text


def test_machines_that_are_alike_run_it() -> None:
    planned = plan(CLUSTER, "desk", {"desk": HERE, "studio": HERE}, MODEL)
    assert (planned.text, planned.backend, planned.split) == ("", "ring", "tensor")
    assert planned.need_bytes == -(-NEED.total_at(2048) // 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": "0.2.0"}, "studio has Draftlight 0.2.0, and desk has Draftlight 0.1.0"),
        ({"mlx": "0.33"}, "studio has mlx 0.33, and desk has mlx 0.32.4"),
        ({"mlx_lm": "0.33"}, "studio has mlx-lm 0.33, and desk has mlx-lm 0.32.2"),
        ({"backends": ()}, "studio has no ring in its MLX, only nothing"),
        ({"expands": True}, "desk computes on its GPU and studio on its CPU"),
        ({"busy": True}, "studio already belongs to a cluster"),
        ({"problem": "It has no model “x”."}, "studio: It has no model “x”."),
        ({"digest": "e" * 64}, "The files of Qwen3-32B on studio are not those on desk"),
        ({"limit_bytes": 8 << 30}, "studio would hold 20.0 GB of Qwen3-32B, and gives it 8.0 GB"),
    ],
)
def test_what_differs_is_said_of_both(change: dict[str, object], said: str) -> None:
    assert said in found(replace(HERE, **change))


def test_jaccl_is_taken_where_devices_are_named_and_mlx_has_it() -> None:
    named = Cluster((Machine("studio", "10.0.0.2", rdma=("rdma_en5", "")),), rdma=("", "rdma_en5"))
    both = replace(HERE, backends=("ring", "jaccl"))
    assert plan(named, "desk", {"desk": both, "studio": both}, MODEL).backend == "jaccl"
    assert plan(CLUSTER, "desk", {"desk": both, "studio": both}, MODEL).backend == "ring"
    assert plan(named, "desk", {"desk": HERE, "studio": both}, MODEL).backend == "ring"
    asked = replace(CLUSTER, backend="jaccl")
    assert "2 devices named" in plan(asked, "desk", {"desk": both, "studio": both}, MODEL).text


def test_what_does_not_divide_is_counted() -> None:
    config = dict(ARCHITECTURES["llama"].config)
    assert why_not("tensor", config, 2) == ""
    assert "4 attention heads, which do not divide by 3 machines (2 would do)" in why_not("tensor", config, 3)
    assert "2 key/value heads" in why_not("tensor", config, 4)
    assert "cannot be split by pipeline; it can be split by tensor" in why_not("pipeline", config, 2)
    assert "cannot be split by tensor" in why_not("tensor", {"model_type": "gemma3_text"}, 2)
    assert abilities({"model_type": "no_such_type"}) == ()
    # Where the numbers forbid one way and the type has the other one, auto takes that.
    qwen = {**ARCHITECTURES["qwen2"].config, "num_hidden_layers": 3}
    assert choose("auto", qwen, 2) == ("tensor", "")
    assert choose("auto", qwen, 3) == ("pipeline", "")
    assert "3 layers for 4 machines" in choose("pipeline", qwen, 4)[1]


def test_a_pipeline_has_every_kind_of_layer_on_each_machine() -> None:
    config = dict(ARCHITECTURES["qwen3_5"].config)  # state, full, state
    assert "of several kinds" in why_not("pipeline", config, 2)
    assert why_not("pipeline", {**config, "num_hidden_layers": 4}, 2) == ""


@pytest.mark.parametrize(
    ("address", "found"),
    [("studio", ("studio", 8318)), ("10.0.0.2:9", ("10.0.0.2", 9)), ("[fe80::1]:9", ("fe80::1", 9)),
     ("fe80::1", ("fe80::1", 8318)), ("[fe80::1]", ("fe80::1", 8318))],
)  # fmt: skip
def test_addresses_are_read_as_people_write_them(address: str, found: tuple[str, int]) -> None:
    assert host_and_port(address, 8318) == found


@pytest.mark.parametrize("address", ["", ":9", "host:99999", "host:port"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ClusterError, match="is not a valid address"):
        host_and_port(address, 8318)
