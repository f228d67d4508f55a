"""`draftlight bench serve`: both servers, asked the same in turn, on one machine in one run.

Four workloads: an edit of a 300-line file (with the file as `prediction`, without it, by mlx-lm's server),
twenty records by a JSON schema (what the grammar forces drafted, not drafted, no grammar, mlx-lm's server),
the second turns of two conversations that alternate, and what the server itself adds to an answer: its
client's clock against the engine's own of the same answer. Conversations are new in each pair, so that their
first turns are cold; an edit's prompt is cached by both servers from the second time on, which its speed in
tokens a second does not contain. Tables learn nothing from requests unless that is asked for.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.bench.environment import Environment, describe
from core.bench.journal import Journal
from core.bench.pieces import BenchPiece, PieceProgress, conditions, measure, of_run
from core.bench.results_folder import write_results
from core.bench.serve import workloads
from core.bench.serve.bench_server import BenchServer, Served
from core.bench.statistic import median

_WARM_UP_TOKENS = 8
_TURN_TOKENS = 8
# Draftlight measures what a block costs while nothing is asked; a server that is just up did not yet.
_SETTLE_S = 25.0
_OWN = "draftlight"
_PLAIN = "mlx-lm"

Ask = Callable[[Mapping[str, BenchServer], int], Served]


class ServedRun(Struct, frozen=True):
    """One answer. `engine_ttft_s` and `engine_decode_s` are by the engine's clock, where that was asked for.

    `valid`: of records, whether all of them were there by the schema's keys.
    """

    pair: int
    workload: str
    way: str
    tokens: int
    ttft_s: float
    decode_s: float
    tokens_per_s: float
    text: str
    steps: int = 0
    forced: int = 0
    cached_tokens: int = 0
    engine_ttft_s: float = 0.0
    engine_decode_s: float = 0.0
    predicted: tuple[int, int] = (0, 0)
    valid: bool = False

    @property
    def key(self) -> tuple[int, str, str]:
        return self.pair, self.workload, self.way


class ServeResults(Struct, frozen=True):
    """All runs, in the order of their measuring."""

    kind: str
    environment: Environment
    model: str
    max_tokens: int
    runs: tuple[ServedRun, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `answers.jsonl`, `results.json` and `report.md`."""
    from core.models.runtime.runtime import prepare

    blas = prepare()
    from core.bench.serve.float_folder import write_float_folder
    from core.models.loader import load

    with tempfile.TemporaryDirectory(prefix="draftlight-serve-") as name:
        scratch = Path(name)
        loaded = load(options.model)
        environment = describe(blas, loaded.info.dtype)
        folder = write_float_folder(loaded, scratch / loaded.info.name.replace(" ", "-"))
        model = loaded.info.name
        del loaded
        journal = Journal(
            options.out / "answers.jsonl", conditions(environment, model, options.max_tokens), ServedRun
        )
        with BenchServer.draftlight(folder, scratch) as own, BenchServer.mlx_lm(folder, scratch) as plain:
            servers = {_OWN: own, _PLAIN: plain}
            for server in servers.values():
                server.chat([{"role": "user", "content": "Hello"}], _WARM_UP_TOKENS)
            time.sleep(_SETTLE_S)
            pieces = [
                BenchPiece((pair, workload, way), partial(_measured, servers, pair, workload, way, ask))
                for pair in range(options.pairs)
                for workload, ways in _workloads(options.max_tokens).items()
                if workload in options.workloads
                for way, ask in (list(ways.items()) if pair % 2 == 0 else list(ways.items())[::-1])
            ]
            progress = measure(journal, pieces, _line, quiet=options.quiet)
    results = ServeResults(
        "serve", environment, model, options.max_tokens, tuple(of_run(journal, pieces)), progress
    )
    report = write_report(results)
    write_results(options.out, results, report)
    print(report)
    return progress.status(True)


def _workloads(max_tokens: int) -> dict[str, dict[str, Ask]]:
    """For each workload the ways it is asked, by whom."""

    def edit(server: str, **fields: Any) -> Ask:
        return lambda servers, pair: servers[server].complete(workloads.edit(), max_tokens, **fields)

    def records(server: str, **fields: Any) -> Ask:
        return lambda servers, pair: servers[server].chat(workloads.records(), max_tokens, **fields)

    def turns(server: str, *, second: bool) -> Ask:
        def ask(servers: Mapping[str, BenchServer], pair: int) -> Served:
            """The second turn of the first conversation, after one of another; or the first turn alone."""
            if not second:
                return servers[server].chat(workloads.conversation(0, pair), _TURN_TOKENS)
            first = workloads.conversation(1, pair)
            served = servers[server].chat(first, _TURN_TOKENS)
            servers[server].chat(workloads.conversation(2, pair), _TURN_TOKENS)
            said = {"role": "assistant", "content": served.text}
            return servers[server].chat([*first, said, workloads.second_question()], _TURN_TOKENS)

        return ask

    def overhead(servers: Mapping[str, BenchServer], pair: int) -> Served:
        """Of the same tokens by both clocks."""
        return servers[_OWN].chat(_long_answer(pair), 128, **plainly, draftlight={"tokens": True})

    prediction = {"type": "content", "content": workloads.predicted_rest()}
    by_schema = {"response_format": workloads.response_format()}
    plainly = {"drafter": "off"}
    return {
        "edit": {
            "prediction": edit(_OWN, prediction=prediction),
            "no prediction": edit(_OWN),
            _PLAIN: edit(_PLAIN),
        },
        "records": {
            "forced drafted": records(_OWN, **by_schema, **plainly),
            "forced not drafted": records(_OWN, **by_schema, **plainly, draftlight={"forced": False}),
            "auto": records(_OWN, **by_schema),
            "no grammar": records(_OWN),
            _PLAIN: records(_PLAIN),
        },
        "conversations": {
            f"{server}, {name}": turns(server, second=second)
            for server in (_OWN, _PLAIN)
            for name, second in (("cold", False), ("second turn", True))
        },
        "overhead": {_OWN: overhead},
    }


def _long_answer(pair: int) -> workloads.Messages:
    return [{"role": "user", "content": f"Tell a long story about {pair + 2} sailors and their ship."}]


def _measured(servers: Mapping[str, BenchServer], pair: int, workload: str, way: str, ask: Ask) -> ServedRun:
    served = ask(servers, pair)
    own = served.own
    details = served.own.get("usage", {}).get("completion_tokens_details") or {}
    held = workloads.as_json(served.text)
    return ServedRun(
        pair,
        workload,
        way,
        served.tokens,
        served.ttft_s,
        served.decode_s,
        served.tokens_per_s,
        served.text,
        own.get("steps", 0),
        own.get("forced", 0),
        (own.get("usage", {}).get("prompt_tokens_details") or {}).get("cached_tokens", 0),
        served.engine_ttft_s,
        served.engine_decode_s,
        (details.get("accepted_prediction_tokens", 0), details.get("rejected_prediction_tokens", 0)),
        isinstance(held, dict) and isinstance(held.get("records"), list),
    )


def _line(run: ServedRun) -> Iterable[str]:
    yield (
        f"pair {run.pair + 1}, {run.workload}, {run.way}: {run.tokens} tokens, TTFT {run.ttft_s:.3f} s,"
        f" {run.tokens_per_s:.1f} tok/s{f', {run.steps} steps' if run.steps else ''}"
    )


def write_report(results: ServeResults) -> str:
    """Markdown: medians a way, and what the comparisons come to."""
    lines = [
        "# The local server",
        "",
        *results.progress.lines,
        results.environment.line,
        "",
        f"{results.model}, temperature 0, answers of at most {results.max_tokens} tokens; medians.",
        "",
        "| workload | way | runs | tokens | TTFT, s | tok/s | steps | forced | cached | valid JSON |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ways: dict[tuple[str, str], list[ServedRun]] = {}
    for each in results.runs:
        ways.setdefault((each.workload, each.way), []).append(each)
    for (workload, way), runs in ways.items():
        lines.append(
            f"| {workload} | {way} | {len(runs)}"
            f" | {_median(runs, 'tokens'):.0f} | {_median(runs, 'ttft_s'):.3f}"
            f" | {_median(runs, 'tokens_per_s'):.1f} | {_median(runs, 'steps'):.0f}"
            f" | {_median(runs, 'forced'):.0f} | {_median(runs, 'cached_tokens'):.0f}"
            f" | {sum(run.valid for run in runs)} |"
        )
    return "\n".join([*lines, "", *_findings(ways), ""])


def _findings(ways: Mapping[tuple[str, str], list[ServedRun]]) -> Iterable[str]:
    if all(("edit", way) in ways for way in ("prediction", "no prediction", _PLAIN)):
        predicted, free, plain = (ways["edit", way] for way in ("prediction", "no prediction", _PLAIN))
        same = sum(one.text == other.text for one, other in zip(predicted, free))
        yield (
            f"- Edit: {_ratio(predicted, plain):.2f} times mlx-lm's speed with the prediction,"
            f" {_ratio(free, plain):.2f} times without; {same} of {len(predicted)} answers equal with and"
            f" without; {median(run.predicted[0] for run in predicted):.0f} predicted tokens accepted."
        )
    if all(("records", way) in ways for way in ("forced drafted", "forced not drafted")):
        drafted, not_drafted = (ways["records", way] for way in ("forced drafted", "forced not drafted"))
        cost = median((run.steps - (run.tokens - run.forced)) / run.forced for run in drafted if run.forced)
        same = sum(one.text == other.text for one, other in zip(drafted, not_drafted))
        yield (
            f"- Records: forced tokens are {median(run.forced / run.tokens for run in drafted):.0%} of the"
            f" answer and cost {cost:.1%} of their share of forwards; {same} of {len(drafted)} answers equal"
            f" with and without drafting them; {_ratio(drafted, not_drafted):.2f} times the speed."
        )
    for server in (_OWN, _PLAIN):
        cold, second = (ways.get(("conversations", f"{server}, {name}")) for name in ("cold", "second turn"))
        if cold and second:
            share = median(after.ttft_s / first.ttft_s for after, first in zip(second, cold) if first.ttft_s)
            yield f"- Alternating conversations, {server}: a second turn's TTFT is {share:.1%} of a cold one."
    if over := ways.get(("overhead", _OWN)):
        ttft_ms = median((run.ttft_s - run.engine_ttft_s) * 1000 for run in over)
        decode = median(run.decode_s / run.engine_decode_s - 1 for run in over if run.engine_decode_s)
        yield f"- The server adds {ttft_ms:.1f} ms to TTFT and {decode:.2%} to decode time."


def _median(runs: Iterable[ServedRun], name: str) -> float:
    return median(getattr(run, name) for run in runs)


def _ratio(candidates: list[ServedRun], baselines: list[ServedRun]) -> float:
    pairs = zip(candidates, baselines)
    return median(one.tokens_per_s / other.tokens_per_s for one, other in pairs if other.tokens_per_s)
