"""`draftlight tables build`, run as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.rehearsal.records import read_records
from tests.core.toy import write_toy_model


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"say {i}"}) + "\n" for i in range(6)))
    return path


def test_from_a_model(tmp_path: Path, prompts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_model(tmp_path / "toy")
    command = ["tables", "build", "--from-model", str(tmp_path / "toy"), "--prompts", str(prompts)]
    command += ["--max-tokens", "8", "--batch", "3", "--out", str(tmp_path / "t.grams")]
    assert main([*command, "--tokens", "20"]) == 0
    assert "of 6 answers" in capsys.readouterr().out
    some = len(list(read_records(tmp_path / "t.jsonl")))
    assert 0 < some < 6
    assert main(command) == 0
    assert "from 6 of 6 answers" in capsys.readouterr().out
    assert len(list(read_records(tmp_path / "t.jsonl"))) == 6


def test_its_own_place_is_in_the_data_folder(
    tmp_path: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    write_toy_model(tmp_path / "toy")
    assert (
        main(
            [
                "tables",
                "build",
                "--from-model",
                str(tmp_path / "toy"),
                "--prompts",
                str(prompts),
                "--max-tokens",
                "4",
            ]
        )
        == 0
    )
    assert len(list((tmp_path / "home" / "data" / "rehearsal").glob("*/toy.grams"))) == 1


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_model(tmp_path / "toy")
    command = ["tables", "build", "--from-model", str(tmp_path / "toy")]
    assert main([*command, "--prompts", str(tmp_path / "none.jsonl")]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert main([*command, "--batch", "0"]) == 1
    assert "--batch 0" in capsys.readouterr().err
