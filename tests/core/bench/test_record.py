"""Recording: greedy answers through the chat template, in a file that replay reads."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step

from core.cli import main
from core.events import Message
from core.models.loader import load
from core.models.prompt import render
from core.rehearsal.streams import read_streams
from tests.core.toy import write_toy_model


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    lines = [{"class": "a", "prompt": "one"}, {"class": "b", "prompt": "two", "then": ["three"]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("batch", ["1", "4"])
def test_what_is_recorded_is_the_plain_answer(tmp_path: Path, prompts: Path, batch: str) -> None:
    write_toy_model(tmp_path / "toy")
    target = tmp_path / "streams.jsonl.gz"
    command = ["bench", "replay", "--record", str(target), "--model", str(tmp_path / "toy"), "--batch", batch]
    assert main([*command, "--prompts", str(prompts), "--max-tokens", "9"]) == 0
    streams = read_streams(target)
    assert sorted(stream.cls for stream in streams) == ["a", "b", "b"]
    toy = load(str(tmp_path / "toy"))
    assert streams[0].prompt in [
        render(toy.tokenizer, [Message("user", text)]).ids for text in ("one", "two")
    ]
    for stream in streams:
        plain = [int(t) for t, _ in generate_step(mx.array(stream.prompt), toy.model, max_tokens=9)]
        assert stream.out == plain[: len(stream.out)]
        assert len(stream.out) == 9 or stream.out[-1] in toy.eos
        assert [top[0] for top in stream.tops] == stream.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prompts.jsonl", "streams.jsonl.gz", "toy"]
    assert (
        main(
            [
                "bench",
                "replay",
                "--streams",
                str(target),
                "--drafters",
                "auto",
                "--out",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )


def test_wrong_usage(tmp_path: Path, prompts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "replay", "--record", str(tmp_path / "s.gz")]) == 2
    assert "--prompts" in capsys.readouterr().err
    assert main(["bench", "replay", "--streams", str(prompts)]) == 2
    assert "--out" in capsys.readouterr().err
