"""`draftlight bench serve`: Draftlight's local server and mlx-lm's, with the same requests in turn.

Four workloads: an edit of a 300-line file (with the result as `prediction`, without it, by mlx-lm), twenty
records by a JSON schema (forced tokens drafted, not drafted, no grammar, mlx-lm), second turns of two
alternating conversations, and the overhead of the server (the client's clock against the engine's for the
same answer). Each pair has new conversations, so first turns are cold. From the second pair on both servers
have the edit's prompt in their cache; tokens per second do not include prefill. Tables do not learn.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

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
from core.errors import WorkerError
from core.system.children import CHILD_FOLDER, child_command, child_environment, module_command

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from core.models.loader import LoadedModel


WORKLOADS = ("edit", "records", "conversations", "overhead")
_WARM_UP_TOKENS = 8
_TURN_TOKENS = 8
# A server that just started measures block costs while it is idle.
_SETTLE_S = 25.0
_OWN = "draftlight"
_PLAIN = "mlx-lm"

Messages = list[dict[str, str]]
Ask = Callable[[Mapping[str, "BenchServer"], int], "Served"]


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


# ---- servers: child processes, with one streaming client that times answers. It opens one connection per
# request, as editors do. Run as a module with a folder and a port, this file is mlx-lm's server with
# Draftlight's BLAS.


_START_S = 120.0
_ANSWER_S = 600.0
_LOOK_S = 0.1


class Served(Struct, frozen=True):
    """One answer as measured by the client. `own` holds the fields only Draftlight's server sends.

    `ttft_s` is the time from before connecting to the first text, `decode_s` from there to the last text.
    `engine_ttft_s` and `engine_decode_s` are the same by the engine's clock, which starts when the worker
    has read the request; 0 unless token times were requested.
    """

    text: str
    tokens: int
    ttft_s: float
    decode_s: float
    engine_ttft_s: float = 0.0
    engine_decode_s: float = 0.0
    own: dict[str, Any] = {}

    @property
    def tokens_per_s(self) -> float:
        """Decode speed of the tokens after the first."""
        return (self.tokens - 1) / self.decode_s if self.decode_s else 0.0


class BenchServer:
    """Context manager for one server process. Its stderr is written to `log`."""

    def __init__(self, name: str, command: Sequence[str], port: int, log: Path, **environment: str) -> None:
        self.name = name
        self._command = command
        self._port = port
        self._log = log
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def draftlight(cls, model: Path, scratch: Path, drafter: str = "auto") -> BenchServer:
        """Draftlight's server, with its data in `scratch`."""
        port = _free_port()
        words = ("serve", "--model", str(model), "--port", str(port), "--drafter", drafter, "--quiet")
        home = scratch / "home"
        log = scratch / "draftlight.log"
        return cls("draftlight", child_command(*words), port, log, DRAFTLIGHT_HOME=str(home))

    @classmethod
    def mlx_lm(cls, model: Path, scratch: Path) -> BenchServer:
        """mlx-lm's server."""
        port = _free_port()
        command = module_command("core.bench.serve", str(model), str(port))
        return cls("mlx-lm", command, port, scratch / "mlx-lm.log")

    def __enter__(self) -> BenchServer:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=CHILD_FOLDER,
                env=child_environment(**self._environment),
            )
        end_s = time.monotonic() + _START_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > end_s:
                self._process.kill()
                raise WorkerError(f"{self.name}'s server did not start: {self._log_end()}", "See above.")
            time.sleep(_LOOK_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def chat(self, messages: Sequence[dict[str, str]], max_tokens: int, **fields: Any) -> Served:
        """A chat completion. Raises `WorkerError` if it fails."""
        return self._post("/v1/chat/completions", max_tokens, messages=messages, **fields)

    def complete(self, prompt: str, max_tokens: int, **fields: Any) -> Served:
        """A completion without chat template. Raises `WorkerError` if it fails."""
        return self._post("/v1/completions", max_tokens, prompt=prompt, **fields)

    def _post(self, path: str, max_tokens: int, **fields: Any) -> Served:
        """A streamed request at temperature 0."""
        body = {
            "max_tokens": max_tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **fields,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
        started = time.perf_counter()
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise WorkerError(f"{self.name} refused a request: {response.read()[:500]!r}", "See above.")
            return _timed(response, started)
        except OSError as error:
            problem = f"{self.name}'s server ended during an answer: {error}. {self._log_end()}"
            raise WorkerError(problem, "See above.") from error
        finally:
            connection.close()

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return True
        except OSError:
            return False

    def _log_end(self) -> str:
        return self._log.read_text(errors="replace")[-500:]


def _timed(response: http.client.HTTPResponse, started: float) -> Served:
    text, first_s, last_s, tokens = "", 0.0, 0.0, 0
    own: dict[str, Any] = {}
    written_s: list[float] = []
    for line in response:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        now_s = time.perf_counter() - started
        chunk = json.loads(line[6:])
        if "error" in chunk:
            raise WorkerError(f"An answer failed: {chunk['error']}", "See above.")
        for choice in chunk.get("choices", ()):
            if piece := choice["delta"].get("content") if "delta" in choice else choice["text"]:
                text += piece
                first_s = first_s or now_s
                last_s = now_s
        timed = chunk.get("draftlight", {}).get("tokens", ())
        written_s += [token["time_s"] for token in timed if token["text"]]
        if usage := chunk.get("usage"):
            tokens = usage["completion_tokens"]
            own = {**chunk.get("draftlight", {}), "timings": chunk.get("timings", {}), "usage": usage}
    first, last = (written_s[0], written_s[-1]) if written_s else (0.0, 0.0)
    return Served(text, tokens, first_s, last_s - first_s, first, last - first, own)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def write_float_folder(loaded: LoadedModel, folder: Path) -> Path:
    """A model folder with the weights that `loaded` computes with, for both servers.

    On MLX's CPU build Draftlight dequantises weights to float32; mlx-lm computes with the quantised ones at
    a third of the speed. The comparison is not about number formats, so both load the float32 weights.
    Returns the model's own folder if nothing was dequantised, else `folder`.
    """
    import mlx.core as mx
    from mlx.utils import tree_flatten

    source = Path(loaded.info.path)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if mx.default_device() == mx.gpu or "quantization" not in config:
        return source
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.suffix != ".safetensors" and not file.name.startswith("draftlight"):
            shutil.copy(file, folder / file.name)
    for key in ("quantization", "quantization_config"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = dict(tree_flatten(loaded.model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder


def main(arguments: Sequence[str]) -> int:
    """Run mlx-lm's server: `FOLDER PORT`."""
    folder, port = arguments
    from core.models.runtime import prepare

    prepare()
    sys.argv = ["mlx_lm.server", "--model", folder, "--port", port, "--log-level", "ERROR"]
    from mlx_lm.server import main as serve

    serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
