"""What is typed wrongly: refused before any work, with what was given and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli import main

_OUT = ["--out", "OUT"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "parity", "--lengths", "x", *_OUT], "“x” is not a whole number from 1 up"),
        (["bench", "parity", "--lengths", "600,,800", *_OUT], "“” is not a whole number"),
        (["bench", "parity", "--runs", "0", *_OUT], "“0” is not a whole number from 1 up"),
        (["bench", "decode", "--pairs", "0", *_OUT], "“0” is not a whole number from 1 up"),
        (["bench", "decode", "--pairs", "9" * 5000, *_OUT], "is not a whole number from 1 up"),
        (["bench", "decode", "--k", "2,65", *_OUT], "“65” is not a whole number from 1 to 64"),
        (["bench", "decode", "--drafters", "off,dowsing", *_OUT], "unknown drafter “dowsing”"),
        (["bench", "prefill", "--keep", "x", *_OUT], "“x” is not a number from 1 to 100"),
        (["bench", "prefill", "--keep", "10,nan", *_OUT], "“nan” is not a number from 1 to 100"),
        (["bench", "prefill", "--kind", "novel", *_OUT], "unknown kind of document “novel”"),
        (["bench", "quality", "--tasks", "all,none", *_OUT], "unknown task “all”"),
        (["bench", "quality", "--readers", "hindsight-x", *_OUT], "unknown reader “hindsight-x”"),
        (["bench", "sweep", "--drafters", "off", *_OUT], "unknown drafter “off”"),
        (["bench", "sweep", "--exactness", "somewhat", *_OUT], "choose from fast, exact"),
        (["bench", "window", "--parts", "foo", *_OUT], "unknown part “foo”"),
        (["bench", "decode", "--out", "HERE"], "is a file"),
        (["bench", "decode", "--out", "HERE/deeper"], "is a file"),
        (["tables", "build", "--corpus", "x", "--kbytes", "0"], "“0” is not a whole number from 1 up"),
        (["models", "list", "--context", "-1"], "“-1” is not a whole number from 1 up"),
        (["bench"], "required: BENCH"),
        (["divine"], "invalid choice: 'divine'"),
    ],
)
def test_it_is_refused_in_a_sentence(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.write_bytes(b"")
    named = {"OUT": str(tmp_path / "out"), "HERE": str(here), "HERE/deeper": str(here / "deeper")}
    assert main([named.get(word, word) for word in arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
