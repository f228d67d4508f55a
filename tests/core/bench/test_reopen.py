"""`bench reopen` on the toy: the saved chat is loaded, and the answers are equal."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from core.bench.reopen import ReopenResults, run
from tests.core.toy import write_toy_model


def test_a_pair_is_measured_and_the_answers_are_equal(tmp_path: Path) -> None:
    write_toy_model(tmp_path / "model", max_position_embeddings=1024)
    options = argparse.Namespace(
        model=str(tmp_path / "model"), tokens=[500], pairs=2, out=tmp_path / "out", quiet=True
    )
    assert run(options) == 0
    results = msgspec.json.decode((tmp_path / "out" / "results.json").read_bytes(), type=ReopenResults)
    (cell,) = results.cells
    assert (cell.tokens, cell.pairs, cell.equal) == (500, 2, True)
    assert cell.disk_tokens > 400
    assert cell.file_bytes == results.written_bytes > 100_000
    assert "| 500 | 2 |" in (tmp_path / "out" / "report.md").read_text()
