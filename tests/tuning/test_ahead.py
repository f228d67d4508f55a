"""`ahead` on the toy: each way reads as it should, and a run goes on where it ended."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.core.toy import write_toy_model
from tests.tuning.__main__ import main
from tests.tuning.ahead import WAYS, Asked


def test_a_pair_is_measured_and_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_model(tmp_path / "model", max_position_embeddings=2048)
    options = ["--model", str(tmp_path / "model"), "--tokens", "1500", "--quiet", "--out", str(tmp_path)]
    assert main(["ahead", *options, "--pairs", "1"]) == 0
    _header, *lines = (tmp_path / "ahead.jsonl").read_bytes().splitlines()
    found = {each.way: each for each in (msgspec.json.decode(line, type=Asked) for line in lines)}
    assert tuple(found) == WAYS
    readings = {way: each.reading for way, each in found.items()}
    assert readings == {
        "today": "sparse",
        "default": "sparse",
        "half": "sparse",
        "dense": "dense",
        "restarted dense": "dense",
        "columns": "columns",
        "restarted columns": "columns",
    }
    for way in ("restarted dense", "restarted columns"):
        assert found[way].disk_tokens == found[way].reused_tokens > 1400
    assert 700 < found["half"].reused_tokens < 1100
    assert 3 < found["dense"].read_tokens < 100
    assert "| columns | columns |" in (tmp_path / "ahead.md").read_text()
    capsys.readouterr()
    assert main(["ahead", *options, "--pairs", "1"]) == 0
    assert (tmp_path / "ahead.jsonl").read_bytes().count(b"\n") == 1 + len(WAYS)
