"""`draftlight bench cluster`: drafted and plain decoding of one model over several machines.

For each network delay a process leads the cluster: it measures T(w), then answers prompts plainly and with
drafts in turn. Without `--cluster` the other machines are processes on this one, connected over loopback.
They compete for its cores, so then only the growth with the delay is meaningful, not the speeds.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.bench.cases import default_prompts, read_prompts
from core.bench.harness import Environment, describe, median, publish, speed_ratio, table
from core.errors import ModelError, WorkerError
from core.events import ClusterEnded, Finished, Generate, Message, Token
from core.settings import Settings, assign_all
from core.settings.cluster import Cluster, Machine, cluster_of
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment
from core.system.files import write_key
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    import mlx.core as mx

    from core.cluster.shard import ClusterModel
    from core.engine.engine import Engine

_CONTEXT_TOKENS = 256
_COLLECTIVES = ("all_sum", "all_gather", "recv_like")
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


class LeadSpec(Struct, frozen=True):
    """Input of a leading process. `delay_ms` is added to each collective. Without `cluster`: one machine."""

    model: str
    cluster: Cluster | None
    delay_ms: float
    drafter: str
    max_tokens: int
    pairs: int


class PairedAnswer(Struct, frozen=True):
    """One prompt answered plainly and with drafts in the same cluster; speeds are decode speeds."""

    kind: str
    plain_per_s: float
    drafted_per_s: float
    plain_steps: int
    drafted_steps: int
    tokens: int
    equal: bool


class LeadResult(Struct, frozen=True):
    """Output of a leading process. `step_ms` maps block width to milliseconds at a context of 256 tokens.

    `messages` and `bytes` are means per forward, summed over all followers.
    """

    delay_ms: float
    step_ms: dict[int, float]
    answers: tuple[PairedAnswer, ...] = ()
    messages: float = 0.0
    bytes: float = 0.0


class ClusterResults(Struct, frozen=True):
    """The content of `results.json`. `alone` is T(w) of one machine; `led` has one entry per delay.

    `empty_heads`: heads added so that the machines can share them (`with_empty_heads`).
    """

    kind: str
    environment: Environment
    model: str
    machines: int
    loopback: bool
    drafter: str
    alone: LeadResult
    led: tuple[LeadResult, ...]
    empty_heads: int = 0


def run(options: argparse.Namespace) -> int:
    """Measure and write `results.json` and `report.md`. Exit status 1 if a drafted answer differed."""
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
        # Idle BLAS threads spin, which slows the other processes of this machine.
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
    publish(options.out, results, write_report(results))
    return 0 if all(answer.equal for one in led for answer in one.answers) else 1


def _divisible(model: str, out: Path, size: int) -> tuple[str, int]:
    """The model, or a copy with empty heads if `size` does not divide its heads; and the number added."""
    from core.cluster.this_machine import folder_of

    added = with_empty_heads(folder_of(model), out, size)
    return (str(out), added) if added else (model, 0)


def _lead(folder: Path, spec: LeadSpec, environment: dict[str, str]) -> LeadResult:
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
        last_line = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise WorkerError(f"The leading process ended with status {done.returncode}: {' '.join(last_line)}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=LeadResult)


@contextmanager
def _loopback(folder: Path, count: int) -> Iterator[Cluster]:
    """A cluster of `count` processes: a `draftlight follow` for each but the leader."""
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
    """The cluster with new tensor ports: those of the previous leader may still be in use."""
    ports = iter(_free_ports(cluster.size))
    machines = tuple(replace(each, tensors=f"127.0.0.1:{next(ports)}") for each in cluster.machines)
    return replace(cluster, machines=machines, here=f"127.0.0.1:{next(ports)}")


def _free_ports(count: int) -> Sequence[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in sockets]


# ---- leading process


def lead(path: Path) -> int:
    """Entry point of a leading process: measure the `LeadSpec` in `path`, print a `LeadResult` as JSON.

    A process can lead only one cluster, so each delay has its own.
    """
    spec = msgspec.json.decode(path.read_bytes(), type=LeadSpec)
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    engine = Engine()
    if spec.cluster is None:
        engine.load(spec.model)
        print(msgspec.json.encode(LeadResult(0.0, _step_ms(engine))).decode(), flush=True)
        return 0
    from core.cluster.loading import ClusterSetup

    engine.use(ClusterSetup(spec.cluster, spec.model, _ended, status=1).load())
    engine.try_out()
    leader = cast("ClusterModel", engine.loaded).leader
    with slow_collectives(spec.delay_ms / 1000):
        costs = _step_ms(engine)
        messages, sent, forwards = leader.messages, leader.bytes, leader.forwards
        answers = tuple(_answers(engine, spec))
        forwards = leader.forwards - forwards
    led = LeadResult(
        spec.delay_ms,
        costs,
        answers,
        (leader.messages - messages) / forwards,
        (leader.bytes - sent) / forwards,
    )
    engine.close()
    print(msgspec.json.encode(led).decode(), flush=True)
    return 0


def _ended(ended: ClusterEnded) -> None:
    print(ended.message, ended.hint, file=sys.stderr, flush=True)


def _step_ms(engine: Engine) -> dict[int, float]:
    (context, *_) = engine.measure_cost((_CONTEXT_TOKENS,)).contexts
    return {width: 1000 * seconds for width, seconds in context.seconds.items()}


def _answers(engine: Engine, spec: LeadSpec) -> list[PairedAnswer]:
    found = []
    for prompt in read_prompts(default_prompts()):
        for pair in range(spec.pairs):
            ways = ("off", spec.drafter) if pair % 2 == 0 else (spec.drafter, "off")
            got = {way: _answer(engine, prompt.prompt, way, spec.max_tokens) for way in ways}
            (plain, plain_ids), (drafted, ids) = got["off"], got[spec.drafter]
            found.append(
                PairedAnswer(
                    prompt.kind,
                    plain.stats.tokens_per_s,
                    drafted.stats.tokens_per_s,
                    plain.stats.steps,
                    drafted.stats.steps,
                    len(ids),
                    ids == plain_ids,
                )
            )
    return found


def _answer(engine: Engine, prompt: str, drafter: str, max_tokens: int) -> tuple[Finished, list[int]]:
    engine.forget(tables=True)
    settings = assign_all(
        Settings(),
        [
            ("drafting.drafter", drafter),
            ("sampling.temperature", 0.0),
            ("sampling.max_tokens", max_tokens),
            ("prefill.mode", "off"),
        ],
    )
    request = Generate("bench", (Message("user", prompt),), settings, raw=True)
    events = list(engine.generate(request))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return finished, [event.id for event in events if isinstance(event, Token)]


@contextmanager
def slow_collectives(delay_s: float) -> Iterator[None]:
    """Make each of MLX's collectives take `delay_s` longer in this process, as on a slower network.

    Slowing the leader is enough, because the followers wait for it in every collective. The result is
    evaluated before the sleep, since a lazy one would be computed after it. Main thread.
    """
    import mlx.core as mx

    own = {name: getattr(mx.distributed, name) for name in _COLLECTIVES} if delay_s else {}

    def slowed(call: Callable[..., mx.array]) -> Callable[..., mx.array]:
        def slow(*args: Any, **options: Any) -> mx.array:
            given = call(*args, **options)
            mx.eval(given)
            time.sleep(delay_s)
            return given

        return slow

    try:
        for name, call in own.items():
            setattr(mx.distributed, name, slowed(call))
        yield
    finally:
        for name, call in own.items():
            setattr(mx.distributed, name, call)


def with_empty_heads(folder: Path, out: Path, size: int) -> int:
    """Write a copy of the model with heads of zero weights, so that `size` divides its heads.

    Returns the number of heads added; 0 means that nothing was written. The output is unchanged, because
    what the added heads attend to is multiplied by 0. Only for measuring: the starter has 9 heads and 3
    key/value heads, which two processes cannot share. Raises `ModelError` for other layouts than Llama's.
    """
    import mlx.core as mx

    config = json.loads((folder / _CONFIG).read_text())
    heads, groups = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if not (isinstance(heads, int) and isinstance(groups, int)):
        raise ModelError("The model's config has no num_attention_heads.")
    wanted = -(-groups // size) * size
    if wanted == groups:
        return 0
    added = (wanted - groups) * (heads // groups)
    weights = mx.load(str(folder / _WEIGHTS))
    assert isinstance(weights, dict)
    grown = {name: _grown(name, each, heads + added, heads, wanted, groups) for name, each in weights.items()}
    if all(grown[name] is weights[name] for name in weights):
        raise ModelError("The model has no self_attn layers like Llama's.")
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns(_CONFIG, _WEIGHTS, "draftlight-manifest.json"))
    mx.save_safetensors(str(out / _WEIGHTS), grown, metadata={"format": "mlx"})
    config["head_dim"] = config.get("head_dim") or config["hidden_size"] // heads
    config |= {"num_attention_heads": heads + added, "num_key_value_heads": wanted}
    (out / _CONFIG).write_text(json.dumps(config))
    return added


def _grown(
    name: str, array: mx.array, heads: int, heads_before: int, groups: int, groups_before: int
) -> mx.array:
    """The weight with zeros for the added heads; for quantised ones the scales and biases are 0 too."""
    import mlx.core as mx

    part = name.rpartition(".self_attn.")[2] if ".self_attn." in name else ""
    axis, count, before = {
        "q_proj": (0, heads, heads_before),
        "k_proj": (0, groups, groups_before),
        "v_proj": (0, groups, groups_before),
        "o_proj": (1, heads, heads_before),
    }.get(part.partition(".")[0], (0, 1, 1))
    if count == before or axis >= array.ndim:
        return array
    shape = list(array.shape)
    if shape[axis] % before:
        raise ModelError(f"{name} has the shape {array.shape}, which {before} heads do not divide.")
    shape[axis] = shape[axis] // before * (count - before)
    return mx.concatenate([array, mx.zeros(shape, array.dtype)], axis)


# ---- report


def write_report(results: ClusterResults) -> str:
    """Block costs, speeds and network traffic as Markdown."""
    where = "processes of one machine" if results.loopback else "machines"
    widths = sorted(results.alone.step_ms)
    costs = [("one machine", results.alone)]
    costs += [(f"{results.machines}, {one.delay_ms:g} ms more", one) for one in results.led]
    lines = [
        f"# {results.model} over {results.machines} {where}, drafted by {results.drafter}",
        "",
        results.environment.line,
        *(("", f"With {results.empty_heads} empty heads, which change nothing.") * bool(results.empty_heads)),
        "",
        "A block of w tokens in ms, and in plain steps, at a context of 256:",
        "",
        *table(
            " | ".join(["machines", *(f"w = {width}" for width in widths)]),
            (
                " | ".join(
                    [name, *(f"{one.step_ms[w]:.0f} ({one.step_ms[w] / one.step_ms[1]:.2f})" for w in widths)]
                )
                for name, one in costs
            ),
        ),
        "",
        "Plain and drafted in the same cluster, medians over all answers:",
        "",
        *table(
            "a collective takes more | plain tok/s | drafted tok/s | drafted ÷ plain"
            " | tokens a drafted step | same text | messages a forward | bytes a forward",
            map(_led_row, results.led),
        ),
    ]
    return "\n".join(lines) + "\n"


def _led_row(led: LeadResult) -> str:
    answers = led.answers
    plain = median(each.plain_per_s for each in answers)
    drafted = median(each.drafted_per_s for each in answers)
    ratio = median(speed_ratio(each.drafted_per_s, each.plain_per_s) for each in answers)
    a_step = median(each.tokens / each.drafted_steps for each in answers if each.drafted_steps)
    return (
        f"{led.delay_ms:g} ms | {plain:.2f} | {drafted:.2f} | {ratio:.2f} | {a_step:.2f}"
        f" | {sum(each.equal for each in answers)} of {len(answers)} | {led.messages:.1f} | {led.bytes:.0f}"
    )
