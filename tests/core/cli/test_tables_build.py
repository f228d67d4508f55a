"""`draftlight tables build`, run as people run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli import main
from core.engine.engine import Engine
from core.models.loader import load
from core.settings import Settings, assign_all
from core.tables.prebuilt import FROZEN
from tests.core.toy import write_toy_model


def test_a_table_of_texts_is_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_model(tmp_path / "toy")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat and the dog and the bird\n" * 3)
    (tmp_path / "texts" / "b").write_bytes(b"\0\0")
    command = ["tables", "build", "--tokenizer", str(tmp_path / "toy"), "--corpus", str(tmp_path / "texts")]
    made = tmp_path / "t" / "toy.frozen"
    assert main([*command, "--leaders", "5", "--followers", "2", "--out", str(made)]) == 0
    said = capsys.readouterr().out
    assert "5 leaders" in said
    assert "1 files were skipped" in said
    loaded = load(str(tmp_path / "toy"))
    info = loaded.info
    table = FROZEN.load(made, family=info.family, family_name=info.family_name, vocabulary=260)
    space, the = loaded.tokenizer.encode(" "), loaded.tokenizer.encode("the")
    assert next(iter(table.entries())) == tuple(space)
    assert tuple(the) in list(table.followers(tuple(space)))
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    assert main([*command, "--tokens", "3", "--out", str(made)]) == 1
    assert "3 tokens are too few" in capsys.readouterr().err


def test_cacheback_uses_the_table_in_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    write_toy_model(tmp_path / "toy")
    (tmp_path / "a.txt").write_text("the cat and the dog and the bird\n" * 20)
    command = ["tables", "build", "--tokenizer", str(tmp_path / "toy"), "--corpus", str(tmp_path / "a.txt")]
    chosen = [("drafting.drafter", "cacheback"), ("cacheback.mode", "frozen"), ("sampling.max_tokens", 4)]
    settings = assign_all(Settings(), chosen)
    engine = Engine()
    engine.load(str(tmp_path / "toy"))
    engine.try_out()
    missing = list(engine.generate_ids([5, 6, 7], settings))[-1].effective.changes  # type: ignore[union-attr]
    assert [each.reason for each in missing] == ["there is no prebuilt table for this tokenizer"]
    assert main(command) == 0
    engine.load(str(tmp_path / "toy"))
    assert list(engine.generate_ids([5, 6, 7], settings))[-1].effective.changes == ()  # type: ignore[union-attr]
