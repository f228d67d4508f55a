"""`draftlight bench cluster`: what drafting gives where one model runs over several machines.

For each delay of the network a process leads: T(w) over the cluster, then answers plain and drafted in turn.
Without a list of machines the others are processes of this one, on its loopback, which compete with each
other for its cores: then only the growth with the delay says something, not the speeds.
"""

from __future__ import annotations

import argparse
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.bench.cluster.leading import LeadSpec, Led
from core.bench.environment import Environment, describe
from core.bench.results_folder import write_results
from core.bench.statistic import median, speed_ratio
from core.errors import WorkerError
from core.settings.cluster import Cluster, Machine, cluster_of
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment
from core.system.key_file import write_key
from core.system.progress_line import ProgressLine


class ClusterResults(Struct, frozen=True):
    """`alone` is T(w) of one machine, `led` one record a delay. `empty_heads` were added for its number."""

    kind: str
    environment: Environment
    model: str
    machines: int
    loopback: bool
    drafter: str
    alone: Led
    led: tuple[Led, ...]
    empty_heads: int = 0


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`."""
    model, empty_heads = absolute_reference(options.model), 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="draftlight-bench-")))
        line = stack.enter_context(ProgressLine(options.quiet))
        if options.cluster:
            cluster = cluster_of(options.cluster.read_bytes(), str(options.cluster))
        else:
            cluster = stack.enter_context(_loopback(folder, options.machines))
            model, empty_heads = _divisible(model, folder / "model", options.machines)
        spec = LeadSpec(model, None, 0.0, options.drafter, options.max_tokens, options.pairs)
        line.say("One machine alone: T(w)", now=True)
        # Processes of one machine share its cores, and BLAS's threads spin.
        environment = child_environment() if options.cluster else child_environment(OPENBLAS_NUM_THREADS="1")
        alone = _lead(folder, spec, environment)
        led = []
        for delay_ms in options.delays:
            line.say(f"{cluster.size} machines, {delay_ms:g} ms a collective", now=True)
            ported = cluster if options.cluster else _with_free_ports(cluster)
            led.append(_lead(folder, replace(spec, cluster=ported, delay_ms=delay_ms), environment))
    results = ClusterResults(
        "cluster",
        describe(),
        options.model,
        cluster.size,
        not options.cluster,
        options.drafter,
        alone,
        tuple(led),
        empty_heads,
    )
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    # That drafts change nothing is what the figures stand on.
    return 0 if all(answer.equal for one in led for answer in one.answers) else 1


def write_report(results: ClusterResults) -> str:
    """Markdown: what a block costs, what drafting gives, what is sent."""
    where = "processes of one machine" if results.loopback else "machines"
    widths = sorted(results.alone.step_ms)
    lines = [
        f"# {results.model} over {results.machines} {where}, drafted by {results.drafter}",
        "",
        results.environment.line,
        *(("", f"With {results.empty_heads} empty heads, which change nothing.") * bool(results.empty_heads)),
        "",
        "A block of w tokens in ms, and in plain steps, at a context of 256:",
        "",
        "| | " + " | ".join(f"w = {width}" for width in widths) + " |",
        "|---|" + "---|" * len(widths),
    ]
    rows = [("one machine", results.alone)]
    rows += [(f"{results.machines}, {one.delay_ms:g} ms more", one) for one in results.led]
    for name, one in rows:
        cells = [f"{one.step_ms[w]:.0f} ({one.step_ms[w] / one.step_ms[1]:.2f})" for w in widths]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Plain and drafted in the same cluster, medians over all answers:",
        "",
        "| a collective takes more | plain tok/s | drafted tok/s | drafted ÷ plain | tokens a drafted step |"
        " same text | messages a forward | bytes a forward |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results.led:
        plain = median(each.plain_per_s for each in one.answers)
        drafted = median(each.drafted_per_s for each in one.answers)
        ratio = median(speed_ratio(each.drafted_per_s, each.plain_per_s) for each in one.answers)
        a_step = median(each.tokens / each.drafted_steps for each in one.answers if each.drafted_steps)
        same = sum(each.equal for each in one.answers)
        lines.append(
            f"| {one.delay_ms:g} ms | {plain:.2f} | {drafted:.2f} | {ratio:.2f} | {a_step:.2f}"
            f" | {same} of {len(one.answers)} | {one.messages:.1f} | {one.bytes:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _divisible(model: str, out: Path, size: int) -> tuple[str, int]:
    """The model, or it with empty heads if its own do not divide; and how many."""
    from core.bench.cluster.empty_heads import with_empty_heads
    from core.cluster.machine.this_machine import folder_of

    added = with_empty_heads(folder_of(model), out, size)
    return (str(out), added) if added else (model, 0)


def _lead(folder: Path, spec: LeadSpec, environment: dict[str, str]) -> Led:
    path = folder / "lead.json"
    path.write_bytes(msgspec.json.encode(spec))
    done = subprocess.run(
        child_command("bench", "cluster", "--lead", str(path), "--out", str(folder)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        cwd=CHILD_FOLDER,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise WorkerError(f"The leading process ended with status {done.returncode}: {' '.join(said)}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Led)


@contextmanager
def _loopback(folder: Path, count: int) -> Iterator[Cluster]:
    """A `draftlight follow` for each machine but the first."""
    secret = folder / "secret"
    write_key(secret, secrets.token_urlsafe(32))
    with ExitStack() as stack:
        addresses = [stack.enter_context(_following(secret)) for _ in range(count - 1)]
        machines = tuple(Machine(f"process {rank}", at) for rank, at in enumerate(addresses, 1))
        yield Cluster(machines, str(secret), backend="ring", deadline_s=120.0)


@contextmanager
def _following(secret: Path) -> Iterator[str]:
    process = subprocess.Popen(
        child_command("follow", "--listen", "127.0.0.1:0", "--secret-file", str(secret)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=child_environment(OPENBLAS_NUM_THREADS="1"),
        cwd=CHILD_FOLDER,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _with_free_ports(cluster: Cluster) -> Cluster:
    """One leader's ports are not free at once for the next one."""
    ports = iter(_free_ports(cluster.size))
    machines = tuple(replace(each, tensors=f"127.0.0.1:{next(ports)}") for each in cluster.machines)
    return replace(cluster, machines=machines, here=f"127.0.0.1:{next(ports)}")


def _free_ports(count: int) -> Sequence[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in taken]
