"""`reopen` on the toy: the saved chat is loaded, and the answers are equal."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.core.toy import write_toy_model
from tests.tuning.__main__ import main
from tests.tuning.reopen import Reopening


def test_a_pair_is_measured_and_the_answers_are_equal(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "model", max_position_embeddings=1024)
    options = ["--model", str(tmp_path / "model"), "--tokens", "500", "--pairs", "2", "--quiet"]
    assert main(["reopen", *options, "--out", str(tmp_path)]) == 0
    _header, *lines = (tmp_path / "reopen.jsonl").read_bytes().splitlines()
    found = [msgspec.json.decode(line, type=Reopening) for line in lines]
    assert len(found) == 2 * 4
    assert len({each.answer for each in found}) == 1
    for each in found:
        assert (each.disk_tokens > 400) is (each.way != "cold")
        assert each.file_bytes > 100_000
    assert "| 500 | 2 |" in (tmp_path / "reopen.md").read_text()
