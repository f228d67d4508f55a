"""Machines for tests: `draftlight follow` as processes of this machine, on its loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mlx.utils import tree_flatten
from msgspec import Struct
from msgspec.structs import replace

from core.settings.cluster import Cluster, Machine
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.system.files import key_of
from tests.processes import children

ROOT = Path(__file__).parents[3]
# What a cluster needs beside computing is quick; ranks share two cores with other tests.
DEADLINE_S = 20.0


def write_architecture(folder: Path, name: str, *, twice: bool = False, **changes: object) -> None:
    """A tiny model of `tests.core.architectures` as a folder, with the toy tokenizer.

    With all its layers `twice`, so that each half has one of every kind. `changes` are of its config.
    """
    import mlx.core as mx

    from tests.core.architectures import ARCHITECTURES, build
    from tests.core.toy import write_tokenizer

    folder.mkdir(parents=True, exist_ok=True)
    spec = ARCHITECTURES[name]
    config = {**spec.config, **changes}
    if twice:
        config["num_hidden_layers"] *= 2
        if "layer_types" in config:
            config["layer_types"] *= 2
    weights = dict(tree_flatten(build(config, spec.weight_scale).parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder)


def free_port() -> int:
    """Of the loopback; nobody has it at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def machines(
    home: Path, count: int, *, deadline_s: float = DEADLINE_S, split: str = "auto"
) -> Iterator[Cluster]:
    """`count` of them beside this one, each with a `draftlight follow` that ends with the block."""
    with followed(home, count, deadline_s=deadline_s, split=split) as (cluster, _):
        yield cluster


@contextmanager
def followed(
    home: Path, count: int, *, deadline_s: float = DEADLINE_S, split: str = "auto"
) -> Iterator[tuple[Cluster, list[Follow]]]:
    """The same with its processes."""
    secret = home / "secret"
    home.mkdir(parents=True, exist_ok=True)
    key_of(secret)
    with ExitStack() as stack:
        followers = [stack.enter_context(follower(secret)) for _ in range(count)]
        yield (
            with_new_ports(
                Cluster(
                    tuple(Machine(f"machine {rank}", one.address) for rank, one in enumerate(followers, 1)),
                    str(secret),
                    split=split,  # type: ignore[arg-type]
                    deadline_s=deadline_s,
                )
            ),
            followers,
        )


def with_new_ports(cluster: Cluster) -> Cluster:
    """What layers exchange goes by ports that are free now."""
    machines = tuple(replace(each, tensors=f"127.0.0.1:{free_port()}") for each in cluster.machines)
    return replace(cluster, machines=machines, here=f"127.0.0.1:{free_port()}")


class Follow(Struct, frozen=True):
    """One `draftlight follow`: where it listens, and its process."""

    address: str
    pid: int

    @property
    def at_work(self) -> list[int]:
        """The processes that follow for it."""
        return children(self.pid)


@contextmanager
def follower(secret: Path, *, command: Sequence[str] | None = None) -> Iterator[Follow]:
    """One `draftlight follow`."""
    words = ["follow", "--listen", "127.0.0.1:0", "--secret-file", str(secret)]
    process = subprocess.Popen(
        [*(command or child_command()), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=child_environment(OPENBLAS_NUM_THREADS="1"),
        cwd=CHILD_FOLDER,
        preexec_fn=use_all_cores,
    )
    assert process.stdout is not None
    try:
        yield Follow(process.stdout.readline().decode().strip(), process.pid)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def use_all_cores() -> None:
    """Side by side tests stay on one core each, and ranks on one core wait for each other's time slices."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def run_trial(home: Path, spec: dict[str, object], timeout_s: float = 1200.0) -> list[dict[str, object]]:
    """What `tests.core.cluster.trial` found in a process of its own, for a process leads one cluster."""
    path = home / "trial.json"
    path.write_text(json.dumps(spec))
    done = subprocess.run(
        [sys.executable, "-m", "tests.core.cluster.trial", str(path)],
        cwd=ROOT,
        env=child_environment(OPENBLAS_NUM_THREADS="1", DRAFTLIGHT_HOME=str(home)),
        preexec_fn=use_all_cores,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]
