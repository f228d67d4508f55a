"""Ranks for tests: processes of this machine with the environment that `mlx.launch` gives them."""

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

from core.system.children import child_command, child_environment

ROOT = Path(__file__).parents[3]
FOLLOW = ("generate", "--prompt", "unused by a rank other than 0")


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


@contextmanager
def launch(
    home: Path, count: int, first: Sequence[str], others: Sequence[str] = (), **environment: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes by rank: the command `first` as rank 0; `others`, by default followers, as the rest.

    They are killed at the end. stdout and stderr of each are pipes.
    """
    home.mkdir(parents=True, exist_ok=True)
    with ExitStack() as ports:
        sockets = [ports.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        hosts = [[f"127.0.0.1:{each.getsockname()[1]}"] for each in sockets]
    (home / "hosts.json").write_text(json.dumps(hosts))
    processes: list[subprocess.Popen[str]] = []
    try:
        for rank in range(count):
            given = {
                "MLX_RANK": str(rank),
                "MLX_HOSTFILE": str(home / "hosts.json"),
                "OPENBLAS_NUM_THREADS": "1",
                "DRAFTLIGHT_HOME": str(home / f"rank-{rank}"),
                **environment,
            }
            processes.append(
                subprocess.Popen(
                    [*(others or child_command(*FOLLOW))] if rank else [*first],
                    cwd=ROOT,
                    env=child_environment(**given),
                    preexec_fn=use_all_cores,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
            )
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def use_all_cores() -> None:
    """Side by side tests stay on one core each, and ranks on one core wait for each other's time slices."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def run_trial(home: Path, count: int, spec: dict[str, object]) -> list[dict[str, object]]:
    """The findings of `tests.core.cluster.trial` as rank 0 of `count`."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "trial.json"
    path.write_text(json.dumps(spec))
    with launch(home, count, [sys.executable, "-m", "tests.core.cluster.trial", str(path)]) as ranks:
        said, problem = ranks[0].communicate(timeout=1200)
        assert ranks[0].returncode == 0, problem[-3000:]
        for other in ranks[1:]:
            assert other.wait(20) == 0, other.communicate()[1]
    return [json.loads(line) for line in said.splitlines()]
