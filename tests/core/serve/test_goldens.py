"""Transcripts of the four APIs, with tools, are those of the golden file, byte for byte.

Ids, times and counts of drafted tokens are masked. The requests, in `conversations.json`, are recorded first
requests of clients, made shorter, and requests with tools, results and schemas in each API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step

from tests.core import golden
from tests.core.serve.served import Reply, Served, serving, settings
from tests.core.toy import toy_model, write_toy_model

# The address and the body of each.
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (path, body)
    for name, (path, body) in json.loads(
        Path(__file__).with_name("conversations.json").read_text("utf-8")
    ).items()
}
_MASKS = [
    (re.compile(r"\b((?:chatcmpl|cmpl|call|toolu|msg|resp|rs|fc|ctc|item|call_)[_-])[0-9a-f]{16,}"), r"\1ID"),
    (re.compile(r'("(?:created|created_at|completed_at)": ?)(?:[0-9.]+|"[^"]*")'), r"\g<1>TIME"),
    # What is drafted depends on the time that steps take.
    (
        re.compile(
            r'("(?:[a-z_]+_(?:s|ms|us|per_second|per_s|bytes)|threads|gate)": ?)(?:"[^"]*"|[-0-9.e]+)'
        ),
        r"\1RUN",
    ),
    (re.compile(r"(\.[0-9]{3})[0-9]+"), r"\1"),
    (re.compile(r'("(?:version|system_fingerprint)": ?)"[^"]*"'), r"\1VERSION"),
    (re.compile(r'("sequence_number": ?)[0-9]+'), r"\g<1>NUMBER"),
]
# The figures of an answer, which one transcript of each API has whole.
_FIGURES = [
    (re.compile(r'"timings":\{[^{}]*\}'), '"timings":{FIGURES}'),
    (re.compile(r'"draftlight":\{"drafter":.*?"changes":'), '"draftlight":{FIGURES,"changes":'),
]
_WITH_FIGURES = {"chat", "completion", "message", "response"}
# A text in a line of a stream. How tokens are put together in lines depends on their times.
_PIECE = re.compile(
    r'(data: .*"(?:content|text|delta|partial_json|arguments|reasoning_content)": ?")((?:[^"\\]|\\.)*)(".*)'
)


@pytest.fixture(scope="module")
def stored_here() -> None:
    """Skips where mlx-lm computes other numbers than it did when the golden files were written."""
    steps = generate_step(mx.array(list(b"hi there")), toy_model(), max_tokens=40)
    if not golden.same("plain", {"toy": [" ".join(str(int(token)) for token, _ in steps)]}):
        pytest.skip("mlx-lm computes other numbers on this processor")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Without drafts, so that each answer takes the same steps."""
    folder = tmp_path_factory.mktemp("models") / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    base = settings(drafting__drafter="off")
    with serving(folder, base=lambda: base) as found:
        yield found


def lines_of(reply: Reply, *, figures: bool = False) -> list[str]:
    """Status, kind and body, without what differs between runs. Pieces of one text are joined."""
    body = reply.body.decode()
    for pattern, mask in (*_MASKS, *(() if figures else _FIGURES)):
        body = pattern.sub(mask, body)
    lines = [f"{reply.status} {reply.headers.get('content-type', '')}"]
    for line in body.split("\n"):
        piece, before = _PIECE.fullmatch(line), _PIECE.fullmatch(lines[-1])
        if piece and before and (piece[1], piece[3]) == (before[1], before[3]):
            lines[-1] = f"{before[1]}{before[2]}{piece[2]}{piece[3]}"
        # An event's name is its type, too.
        elif line and not line.startswith((": ", "event: ")):
            lines.append(line)
    return lines


@pytest.mark.usefixtures("stored_here")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_transcript_is_that_of_the_golden_file(name: str, served: Served) -> None:
    path, body = REQUESTS[name]
    served.ask("POST", path, body)  # what is reused of the cache is the same then
    lines = lines_of(served.ask("POST", path, body), figures=name in _WITH_FIGURES)
    golden.compare("transcripts", {name: lines})


def test_the_lists_of_models_are_those_of_the_golden_file(served: Served) -> None:
    for path in ("/v1/models", "/v1/models/toy", "/v1/models/other", "/nowhere"):
        golden.compare("transcripts", {f"GET {path}": lines_of(served.ask("GET", path))})
