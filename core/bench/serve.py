"""`draftlight bench serve`: Draftlight's local server and mlx-lm's, with the same requests in turn.

Four workloads: an edit of a 300-line file (with the result as `prediction`, without it, by mlx-lm), twenty
records by a JSON schema (forced tokens drafted, not drafted, no grammar, mlx-lm), second turns of two
alternating conversations, and the overhead of the server (the client's clock against the engine's for the
same answer). Each pair has new conversations, so first turns are cold. From the second pair on both servers
have the edit's prompt in their cache; tokens per second do not include prefill. Tables do not learn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.bench.harness import (
    BenchPiece,
    Environment,
    Journal,
    PieceProgress,
    conditions,
    describe,
    measure,
    median,
    publish,
    table,
)
from core.bench.serve_servers import BenchServer, Served, write_float_folder

WORKLOADS = ("edit", "records", "conversations", "overhead")
_WARM_UP_TOKENS = 8
_TURN_TOKENS = 8
# A server that just started measures block costs while it is idle.
_SETTLE_S = 25.0
_OWN = "draftlight"
_PLAIN = "mlx-lm"

Messages = list[dict[str, str]]
Ask = Callable[[Mapping[str, BenchServer], int], Served]


class ServedRun(Struct, frozen=True):
    """One answer of one server (`way`). `engine_ttft_s` and `engine_decode_s` are by the engine's clock.

    `predicted` counts accepted and rejected prediction tokens. `valid`: the answer is JSON with `records`.
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
    """The content of `results.json`: all runs in measured order."""

    kind: str
    environment: Environment
    model: str
    max_tokens: int
    runs: tuple[ServedRun, ...]
    progress: PieceProgress


def run(options: argparse.Namespace) -> int:
    """Measure and write `answers.jsonl`, `results.json` and `report.md`."""
    from core.models.runtime import prepare

    blas = prepare()
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
            runs, progress = measure(journal, pieces, _lines, quiet=options.quiet)
    results = ServeResults("serve", environment, model, options.max_tokens, runs, progress)
    publish(options.out, results, write_report(results))
    return progress.status(True)


def _workloads(max_tokens: int) -> dict[str, dict[str, Ask]]:
    """For each workload its ways: a server with its request."""

    def edit(server: str, **fields: Any) -> Ask:
        return lambda servers, pair: servers[server].complete(edit_prompt(), max_tokens, **fields)

    def records(server: str, **fields: Any) -> Ask:
        return lambda servers, pair: servers[server].chat(records_messages(), max_tokens, **fields)

    def turns(server: str, *, second: bool) -> Ask:
        def request(servers: Mapping[str, BenchServer], pair: int) -> Served:
            """A first turn, or a second turn with another conversation's turn between."""
            if not second:
                return servers[server].chat(conversation(0, pair), _TURN_TOKENS)
            first = conversation(1, pair)
            served = servers[server].chat(first, _TURN_TOKENS)
            servers[server].chat(conversation(2, pair), _TURN_TOKENS)
            answer = {"role": "assistant", "content": served.text}
            return servers[server].chat([*first, answer, second_question()], _TURN_TOKENS)

        return request

    def overhead(servers: Mapping[str, BenchServer], pair: int) -> Served:
        """The same tokens timed by the client's and the engine's clock."""
        return servers[_OWN].chat(_long_answer(pair), 128, **plainly, draftlight={"tokens": True})

    prediction = {"type": "content", "content": predicted_rest()}
    by_schema = {"response_format": response_format()}
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


def _long_answer(pair: int) -> Messages:
    return [{"role": "user", "content": f"Tell a long story about {pair + 2} sailors and their ship."}]


def _measured(servers: Mapping[str, BenchServer], pair: int, workload: str, way: str, ask: Ask) -> ServedRun:
    served = ask(servers, pair)
    own = served.own
    details = served.own.get("usage", {}).get("completion_tokens_details") or {}
    answer = as_json(served.text)
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
        isinstance(answer, dict) and isinstance(answer.get("records"), list),
    )


# ---- requests

_GOODS = (
    *("apples", "bread", "candles", "dates", "eggs", "flour", "grapes", "honey", "ink", "jam"),
    *("knives", "lamps", "milk", "nuts", "onions", "pears", "quinces", "rice", "salt"),
)
_METHODS = (
    """    def sell_{name}(self, count):
        if count > self.{name}:
            raise ValueError("There are not enough {name}.")
        self.{name} -= count
        return count * self.price_of("{name}")""",
    """    def order_{name}(self, count, supplier):
        \"\"\"Have some {name} sent.\"\"\"
        self.{name} += count
        self.orders.append(("{name}", count, supplier))
        return len(self.orders)""",
    """    def show_{name}(self):
        shelf = self.shelves["{name}"]
        print("The {name} are on shelf", shelf)""",
)
_KINDS = ("fresh", "dried", "small", "large", "plain", "sweet")
_FILE_LINES = 300
_BEGUN_LINES = 25
_RECORDS = 20
_PARAGRAPHS = 40

RECORD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "records": {
            "type": "array",
            "minItems": _RECORDS,
            "maxItems": _RECORDS,
            "items": {
                "type": "object",
                "properties": {
                    "product_name": {"type": "string", "maxLength": 40},
                    "quantity_in_stock": {"type": "integer"},
                    "needs_reordering": {"type": "boolean"},
                },
                "required": ["product_name", "quantity_in_stock", "needs_reordering"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["records"],
    "additionalProperties": False,
}


def source_file() -> str:
    """A generated Python file of 300 lines."""
    lines = ['"""The shop."""', "", "", "class Shop:"]
    for name in _GOODS:
        for method in _METHODS:
            lines += method.format(name=name).splitlines()
            lines.append("")
    return "\n".join(lines[:_FILE_LINES])


def edit_prompt() -> str:
    """The file and the first 25 lines of the edited file, as a completion prompt.

    Small models complete a file reliably, but do not follow an instruction to return one.
    """
    begun = "\n".join(edited_file().splitlines()[:_BEGUN_LINES])
    return f"# The file\n{source_file()}\n\n# The same file, with Shop renamed to Store\n{begun}\n"


def predicted_rest() -> str:
    """The remaining lines of the edited file: the prediction of an editor that renames a symbol."""
    return "\n".join(edited_file().splitlines()[_BEGUN_LINES:])


def edited_file() -> str:
    """The file with its class renamed."""
    return source_file().replace("Shop", "Store")


def records_messages() -> Messages:
    """Twenty lines to convert to JSON records."""
    lines = [
        f"{_KINDS[number % len(_KINDS)]} {_GOODS[number % len(_GOODS)]}: {number * 7 % 40} left,"
        f" {'order more' if number % 3 == 0 else 'enough'}"
        for number in range(_RECORDS)
    ]
    request = 'Give each line as a record of JSON: {"records": [{"product_name": …, "quantity_in_stock": …}]}'
    return [{"role": "user", "content": "\n".join([*lines, "", request])}]


def response_format() -> dict[str, Any]:
    """`RECORD_SCHEMA` in the format of OpenAI's API."""
    schema = {"name": "records", "schema": RECORD_SCHEMA, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def conversation(number: int, pair: int) -> Messages:
    """The first question of a conversation, about a text that is unique to it and to its pair."""
    words = [
        f"Store {number}-{pair}-{place} keeps {_KINDS[(place + number) % len(_KINDS)]}"
        f" {_GOODS[(place * 3 + pair) % len(_GOODS)]} on shelf {place * 13 % 57}; whoever needs some asks at"
        f" the desk, which is open from {place % 5 + 6} to {place % 7 + 14}."
        for place in range(_PARAGRAPHS)
    ]
    return [{"role": "user", "content": "\n".join([*words, "", "What does the first store keep?"])}]


def second_question() -> dict[str, str]:
    """The second question, about the same text."""
    return {"role": "user", "content": "And the second store?"}


def as_json(text: str) -> Any:
    """The answer parsed as JSON; None if that fails."""
    try:
        return json.loads(text)
    except ValueError:
        return None


# ---- report


def _lines(run: ServedRun) -> Iterable[str]:
    yield (
        f"pair {run.pair + 1}, {run.workload}, {run.way}: {run.tokens} tokens, TTFT {run.ttft_s:.3f} s,"
        f" {run.tokens_per_s:.1f} tok/s{f', {run.steps} steps' if run.steps else ''}"
    )


def write_report(results: ServeResults) -> str:
    """Medians of each way and the comparisons as Markdown."""
    ways: dict[tuple[str, str], list[ServedRun]] = {}
    for each in results.runs:
        ways.setdefault((each.workload, each.way), []).append(each)
    lines = [
        "# The local server",
        "",
        *results.progress.lines,
        results.environment.line,
        "",
        f"{results.model}, temperature 0, answers of at most {results.max_tokens} tokens; medians.",
        "",
        *table(
            "workload | way | runs | tokens | TTFT, s | tok/s | steps | forced | cached | valid JSON",
            (
                f"{workload} | {way} | {len(runs)}"
                f" | {_median(runs, 'tokens'):.0f} | {_median(runs, 'ttft_s'):.3f}"
                f" | {_median(runs, 'tokens_per_s'):.1f} | {_median(runs, 'steps'):.0f}"
                f" | {_median(runs, 'forced'):.0f} | {_median(runs, 'cached_tokens'):.0f}"
                f" | {sum(run.valid for run in runs)}"
                for (workload, way), runs in ways.items()
            ),
            right_from=2,
        ),
    ]
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
