"""What is typed wrongly: refused before any work, with what was given and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli import main

_OUT = ["--out", "OUT"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bench", "--prompt-tokens", "x", *_OUT], "“x” is not a whole number from 1 up"),
        (["bench", "--prompt-tokens", "600,,800", *_OUT], "“” is not a whole number"),
        (["bench", "--pairs", "0", *_OUT], "“0” is not a whole number from 1 up"),
        (["bench", "--pairs", "9" * 5000, *_OUT], "is not a whole number from 1 up"),
        (["bench", "--drafters", "off,dowsing", *_OUT], "unknown drafter “dowsing”"),
        (["bench", "--drafters", "all,off", *_OUT], "unknown drafter “all”"),
        (["bench", "--cases", "document,novel", *_OUT], "unknown case “novel”"),
        (["bench", "--set", "ngram_simple.k=2,65", *_OUT], "“65” is not allowed"),
        (["bench", "--set", "decoding.exactness=somewhat", *_OUT], "fast, exact"),
        (["bench", "retrieval", "--keep", "x", *_OUT], "“x” is not a number from 1 to 100"),
        (["bench", "retrieval", "--keep", "10,nan", *_OUT], "“nan” is not a number from 1 to 100"),
        (["bench", "retrieval"], "required: --out"),
        (["bench", "window", "--parts", "foo", *_OUT], "unknown part “foo”"),
        (["bench", "--out", "HERE"], "is a file"),
        (["bench", "--out", "HERE/deeper"], "is a file"),
        (["bench", "decode", *_OUT], "invalid choice: 'decode'"),
        (["tables", "build", "--corpus", "x", "--kbytes", "0"], "“0” is not a whole number from 1 up"),
        (["models", "list", "--context", "-1"], "“-1” is not a whole number from 1 up"),
        (["divine"], "invalid choice: 'divine'"),
        (["--scheme", "system", "tables", "list"], "--scheme before tables has no effect"),
        (["bench", "--pairs=3", *_OUT, "window", *_OUT], "--pairs before window has no effect"),
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
