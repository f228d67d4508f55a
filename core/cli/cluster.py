"""`draftlight cluster` and `draftlight follow`: one model over several machines."""

from __future__ import annotations

import argparse
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.cli.arguments import add_command, add_model, add_quiet, readable_file
from core.errors import ClusterError
from core.events import ClusterEnded, MachinesChecked
from core.settings.cluster import FOLLOW_PORT, Cluster, cluster_of
from core.system.paths import data_dir
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands of `draftlight cluster`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = add_command(commands, "check", "check whether a model can run over the machines", run)
    add_model(check)
    status = add_command(commands, "status", "show the machines and their state", run)
    status.set_defaults(model="")
    start = add_command(commands, "start", "start missing followers (draftlight follow) by ssh", begin)
    start.set_defaults(model="")
    start.add_argument("--ssh", default="ssh", metavar="PROGRAM", help="the ssh program (default ssh)")
    start.add_argument(
        "--command",
        default="draftlight",
        metavar="PATH",
        help="the command of Draftlight on those machines (default draftlight)",
    )
    for command in (check, status, start):
        command.add_argument("cluster", type=readable_file, metavar="FILE", help=_FILE)
        add_quiet(command)


_SSH_S, _START_S, _REACH_S, _LOOK_S = 30.0, 20.0, 3.0, 0.2
_FILE = (
    'JSON file with the machines (docs/cluster.md): {"machines": [{"name": "studio", "address": "10.0.0.2"}]}'
)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add `--cluster`."""
    parser.add_argument("--cluster", type=readable_file, metavar="FILE", help=f"run the model over {_FILE}")


def read_cluster(path: Path) -> Cluster:
    """The cluster of a JSON file. Raises `SettingError` if the file is invalid."""
    return cluster_of(path.read_bytes(), str(path))


def run(options: argparse.Namespace) -> int:
    """Check the machines. Exit status 0 if the model can run. Raises `KeyFileError`, `ModelError`."""
    cluster = read_cluster(options.cluster)
    from core.models.runtime import prepare

    prepare()
    from core.cluster.loading import ClusterSetup

    with ProgressLine(options.quiet) as line:
        line.say(f"Checking {len(cluster.machines)} machines", now=True)
        with ClusterSetup(cluster, options.model) as setup:
            checked = setup.checked()
    print(report(checked, options.model))
    return 0 if checked.runs else 1


def begin(options: argparse.Namespace) -> int:
    """Start missing followers, then check. Raises `ClusterError` if a machine cannot be started."""
    from core.cluster.wire import host_and_port

    cluster = read_cluster(options.cluster)
    for machine in cluster.machines:
        host, port = host_and_port(machine.address, FOLLOW_PORT)
        if _listens(host, port):
            continue
        follow = shlex.join([options.command, "follow", "--listen", f"{host}:{port}"])
        # `nohup` keeps it running when the connection ends. It finds its secret in its default place.
        command = [options.ssh, "-o", "BatchMode=yes", host, f"nohup {follow} >/dev/null 2>&1 </dev/null &"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SSH_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClusterError(
                f"Cannot reach {machine.name} ({host}) with {options.ssh}: {error}.",
                f"Run on that machine: {follow}",
            ) from None
        if done.returncode:
            problem = done.stderr.decode("utf-8", "replace").strip()
            raise ClusterError(
                f"{options.ssh} could not start draftlight follow on {machine.name}: {problem}.",
                f"Run on that machine: {follow}",
            )
        until = time.monotonic() + _START_S
        while not _listens(host, port) and time.monotonic() < until:
            time.sleep(_LOOK_S)
    return run(options)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _REACH_S).close()
    except OSError:
        return False
    return True


def report(checked: MachinesChecked, model: str) -> str:
    """The result of a check, one line per machine."""
    lines = []
    for rank, machine in enumerate(checked.machines):
        if not machine.reached:
            lines.append(f"{rank}  {machine.name}: {machine.problem} {machine.hint}".rstrip())
            continue
        memory = f"{machine.memory_bytes / 2**30:.0f} GB, gives {machine.limit_bytes / 2**30:.1f} GB"
        need = f", would hold {machine.need_bytes / 2**30:.1f} GB" if machine.need_bytes else ""
        versions = f"Draftlight {machine.version}, mlx {machine.mlx}, mlx-lm {machine.mlx_lm}"
        has = ", ".join(machine.backends)
        lines.append(f"{rank}  {machine.name}: {machine.chip}, {memory}{need}; {versions}; {has}")
        if machine.problem:
            lines.append(f"   {machine.problem} {machine.hint}".rstrip())
    lines += checked.problems
    if checked.runs:
        what = f"{model} runs" if model else "A model may run"
        lines.append(
            f"{what} over {len(checked.machines)} machines by {checked.backend}, split by {checked.split}."
        )
    else:
        lines.append("Nothing runs over these machines as they are.")
    return "\n".join(lines)


def load_over(engine: Engine, path: Path, model: str, line: ProgressLine) -> None:
    """Load `model` over the machines in the file `path`.

    If the cluster ends, this process exits with status 1.
    """
    from core.cluster.loading import ClusterSetup

    def ended(event: ClusterEnded) -> None:
        line.clear()
        print(f"\ndraftlight: {event.message} {event.hint}".rstrip(), file=sys.stderr, flush=True)

    setup = ClusterSetup(read_cluster(path), model, ended, status=1)
    engine.use(setup.load(lambda stage, fraction: line.say(stage), engine.make_room))


# ---- follow


def add_follow_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `draftlight follow`."""
    parser.add_argument(
        "--listen", required=True, metavar="ADDRESS",
        help=f"an address of this machine that the leader can reach, host or host:port (default port"
        f" {FOLLOW_PORT}; 0 chooses a free one)",
    )  # fmt: skip
    parser.add_argument(
        "--secret-file", type=Path, default=data_dir() / "cluster-secret", metavar="F",
        help="the secret shared by all machines; created if missing (default: in Draftlight's data folder)",
    )  # fmt: skip
    parser.set_defaults(run=follow)


def follow(options: argparse.Namespace) -> int:
    """Hold a part of a model for the leader until Ctrl-C. Raises `ClusterError`, `KeyFileError`."""
    from core.cluster.follower import Following
    from core.cluster.wire import host_and_port
    from core.system.files import key_of

    host, port = host_and_port(options.listen, FOLLOW_PORT)
    secret, made = key_of(options.secret_file)
    if made:
        print(
            f"A new secret is in {options.secret_file}. Copy the file to the leader.",
            file=sys.stderr,
        )
    following = Following(host, port, secret.encode(), lambda words: print(words, file=sys.stderr))
    # On stdout for programs that start this one.
    print(f"{host}:{following.port}", flush=True)

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        following.run()
    except KeyboardInterrupt:
        return 0
    return 0
