"""What the local server adds to an answer: the client's clock against the engine's for the same tokens.

    python -m tests.tuning served --out DIR

Plain greedy answers of at most 128 tokens, one connection each, as editors open them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from msgspec import Struct

from core.bench.runner import Bench, BenchPiece, describe, run_bench, table
from core.errors import WorkerError
from core.events.bench import median
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment

_TOKENS = 128
_START_S, _ANSWER_S = 120.0, 600.0


class ServedAnswer(Struct, frozen=True):
    """One answer. Times to the first token and from there to the last one, by both clocks."""

    number: int
    tokens: int
    ttft_s: float
    decode_s: float
    engine_ttft_s: float
    engine_decode_s: float

    @property
    def key(self) -> tuple[int]:
        return (self.number,)

    @property
    def added_ms(self) -> float:
        """What the server adds to the time to first token."""
        return (self.ttft_s - self.engine_ttft_s) * 1000


def run(options: argparse.Namespace) -> int:
    """Measure and write `served.jsonl` and `served.md`."""
    with _server(absolute_reference(options.model)) as port:
        pieces = [BenchPiece((number,), partial(ask, port, number)) for number in range(options.pairs)]
        conditions = (options.model, f"{_TOKENS} tokens")
        bench = Bench("served", "The local server", describe(), conditions, ServedAnswer, options.out)
        return run_bench(bench, pieces, _line, report, quiet=options.quiet)[1].status(True)


@contextmanager
def _server(model: str) -> Iterator[int]:
    """Draftlight's server, with an empty home folder; yields its port."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = int(held.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="draftlight-served-") as home:
        process = subprocess.Popen(
            child_command("serve", "--model", model, "--port", str(port), "--quiet"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=CHILD_FOLDER,
            env=child_environment(DRAFTLIGHT_HOME=home),
        )
        try:
            end_s = time.monotonic() + _START_S
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > end_s:
                    raise WorkerError("The server did not start.", "See above.")
                time.sleep(0.1)
            yield port
        finally:
            process.terminate()
            process.wait()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def ask(port: int, number: int, **fields: Any) -> ServedAnswer:
    """One streamed answer to a question of its own, so that nothing of its prompt is cached."""
    question = f"Tell a long story about {number + 2} sailors and their ship."
    body = {"messages": [{"role": "user", "content": question}], "max_tokens": _TOKENS, "temperature": 0.0}
    body |= {"stream": True, "drafter": "off", "draftlight": {"tokens": True}, **fields}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    started = time.perf_counter()
    seen_s: list[float] = []
    written_s: list[float] = []
    try:
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise WorkerError(f"An answer failed: {chunk['error']}", "See above.")
            if any(choice["delta"].get("content") for choice in chunk.get("choices", ())):
                seen_s.append(time.perf_counter() - started)
            tokens = chunk.get("draftlight", {}).get("tokens", ())
            written_s += [token["time_s"] for token in tokens if token["text"]]
    finally:
        connection.close()
    if not (seen_s and written_s):
        raise WorkerError(f"The server sent no answer (status {response.status}).", "See its output above.")
    seen, written = ((each[0], each[-1] - each[0]) for each in (seen_s, written_s))
    return ServedAnswer(number, len(written_s), *seen, *written)


def _line(answer: ServedAnswer) -> str:
    return f"answer {answer.number + 1}: TTFT {answer.ttft_s:.3f} s, {answer.added_ms:.1f} ms of them added"


def report(found: Sequence[ServedAnswer]) -> list[str]:
    """Medians, and what the server adds."""
    decode = median(each.decode_s / each.engine_decode_s - 1 for each in found if each.engine_decode_s)
    row = f"{len(found)} | {median(each.ttft_s for each in found):.3f}"
    row += f" | {median(each.decode_s for each in found):.2f}"
    row += f" | {median(each.added_ms for each in found):.1f} | {decode:.2%}"
    return table("answers | TTFT, s | decoding, s | added to TTFT, ms | added to decoding", [row])
