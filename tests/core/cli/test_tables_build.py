"""`draftlight tables build`, run as people run it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from core.bench.runs import draftlight
from core.cli import main
from core.drafting.gram_table import GramTable
from core.engine.engine import Engine
from core.models.loader import load, load_family
from core.rehearsal import streams as module
from core.rehearsal.rehearsal import GreedyAnswers
from core.rehearsal.streams import read_records
from core.settings import Settings, assign_all
from core.tables.gram_count import Corpus, GramCounter
from core.tables.leader_count import LeaderCount
from core.tables.prebuilt import FROZEN, TEXTS_SUFFIX, load_built, texts_path
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
    some = len(list(read_records(tmp_path / "t.grams.answers.jsonl")))
    assert 0 < some < 6
    assert main(command) == 0
    assert "from 6 of 6 answers" in capsys.readouterr().out
    assert len(list(read_records(tmp_path / "t.grams.answers.jsonl"))) == 6


def test_from_a_model_with_its_ids_to_go_on_from(
    tmp_path: Path, prompts: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toy_model(tmp_path / "toy")
    shipped = tmp_path / "shipped"
    monkeypatch.setattr(module, "shipped_dir", lambda: shipped)
    command = ["tables", "build", "--from-model", str(tmp_path / "toy"), "--prompts", str(prompts)]
    command += ["--max-tokens", "8", "--batch", "3"]
    ids = shipped / "toy.answers.xz"
    assert main([*command, "--out", str(tmp_path / "t.grams"), "--ids", str(ids)]) == 0
    assert f"{ids}: 6 answers, " in capsys.readouterr().out
    # Elsewhere, where the model must not be asked again.
    monkeypatch.setattr(GreedyAnswers, "step", lambda self: pytest.fail("it was answered already"))
    assert main([*command, "--out", str(tmp_path / "u.grams")]) == 0
    assert "from 6 of 6 answers" in capsys.readouterr().out
    one, other = (
        {
            tuple(stream.prompt): stream.out
            for stream in read_records(tmp_path / f"{name}.grams.answers.jsonl")
        }
        for name in "tu"
    )
    assert one == other


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
    assert len(list((tmp_path / "home" / "data" / "tables" / "built").glob("toy.grams.safetensors"))) == 1


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_model(tmp_path / "toy")
    command = ["tables", "build", "--from-model", str(tmp_path / "toy")]
    assert main([*command, "--prompts", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main([*command, "--batch", "0"]) == 2
    assert "“0” is not" in capsys.readouterr().err


def test_from_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy_model(tmp_path / "toy")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat and the dog and the bird\n" * 3)
    (tmp_path / "texts" / "b").write_bytes(b"\0\0")
    command = ["tables", "build", "--tokenizer", str(tmp_path / "toy"), "--corpus", str(tmp_path / "texts")]
    assert (
        main([*command, "--leaders", "5", "--followers", "2", "--out", str(tmp_path / "t" / "toy.frozen")])
        == 0
    )
    said = capsys.readouterr().out
    assert "5 leaders" in said
    assert "1 files were passed over" in said
    info = load(str(tmp_path / "toy")).info
    table = FROZEN.load(
        tmp_path / "t" / "toy.frozen", family=info.family, family_name=info.family_name, vocabulary=260
    )
    tokenizer = load(str(tmp_path / "toy")).tokenizer
    space, the = tokenizer.encode(" "), tokenizer.encode("the")
    assert next(iter(table.entries())) == tuple(space)
    assert tuple(the) in list(table.followers(tuple(space)))
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["toy.frozen"]
    assert main([*command]) == 2
    assert "--out" in capsys.readouterr().err


def test_texts_go_on_where_they_were_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("core.tables.leader_count.LeaderCount", partial(LeaderCount, rows=1))
    monkeypatch.setattr("core.tables.gram_count._PIECE_BYTES", 60)
    write_toy_model(tmp_path / "toy")
    text = tmp_path / "a.txt"
    text.write_text("the cat and the dog and the bird\n" * 20)
    command = ["tables", "build", "--tokenizer", str(tmp_path / "toy"), "--corpus", str(text), "--out"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    encoded: list[int] = []
    add = LeaderCount.add

    def stopped(count: LeaderCount, ids: Sequence[int], *, starts: bool = True) -> None:
        encoded.append(len(ids))
        if len(encoded) == 5:
            raise KeyboardInterrupt
        add(count, ids, starts=starts)

    monkeypatch.setattr(LeaderCount, "add", stopped)
    assert main([*command, str(tmp_path / "part")]) == 130
    assert "continues from here" in capsys.readouterr().out
    counted = tmp_path / ".part.counted"
    assert counted.is_dir()
    assert main([*command, str(tmp_path / "part")]) == 0
    monkeypatch.setattr(LeaderCount, "add", add)
    pieces = len(list(Corpus([text]).pieces(lambda piece: [len(piece)])))
    assert len(encoded) == pieces + 1, "four pieces were not read again"
    info = load_family(str(tmp_path / "toy"))
    part, whole = (
        FROZEN.load(
            tmp_path / name, family=info.family, family_name=info.family_name, vocabulary=info.vocabulary
        ).entries()
        for name in ("part", "whole")
    )
    assert list(part.items()) == list(whole.items())
    assert not counted.exists()


def test_texts_for_auto_are_asked_from_the_next_load_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    write_toy_model(tmp_path / "toy")
    (tmp_path / "a.txt").write_text("the cat and the dog and the bird\n" * 20)
    command = ["tables", "build", "--tokenizer", str(tmp_path / "toy"), "--corpus", str(tmp_path / "a.txt")]
    command += ["--for", "auto"]
    assert main([*command, "--tokens", "40"]) == 0
    assert "from 40 tokens of text\nThat was " in capsys.readouterr().out
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "That was" not in said
    engine = Engine()
    info = engine.load(str(tmp_path / "toy"))
    assert str(texts_path(info.family_name)) in said
    table, troubles = load_built(info, TEXTS_SUFFIX)
    assert table is not None
    assert not troubles
    the = ids_of(engine, "the")
    assert table.lookup(the)[0].followers[0][0] == ids_of(engine, " ")[0]
    asked = []
    look = GramTable.lookup
    monkeypatch.setattr(GramTable, "lookup", lambda self, tail: asked.append(tail) or look(self, tail))
    for wanted in (False, True):
        settings = assign_all(
            Settings(),
            [("drafting.drafter", "auto"), ("auto.texts", wanted), ("sampling.max_tokens", 4)],
        )
        draftlight(engine, the * 5, settings)
        assert bool(asked) == wanted


def ids_of(engine: Engine, text: str) -> list[int]:
    return list(engine.loaded.tokenizer.encode(text, add_special_tokens=False))


def test_texts_for_auto_that_are_stopped_or_empty_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_toy_model(tmp_path / "toy")
    (tmp_path / "a.txt").write_text("")
    command = ["tables", "build", "--tokenizer", str(tmp_path / "toy"), "--corpus", str(tmp_path / "a.txt")]
    command += ["--for", "auto", "--out", str(tmp_path / "made" / "t.texts.safetensors")]
    assert main(command) == 1
    assert "no text to learn from" in capsys.readouterr().err

    def stopped(counter: GramCounter, prompt: Sequence[int], out: Sequence[int]) -> None:
        raise KeyboardInterrupt

    (tmp_path / "a.txt").write_text("some text")
    monkeypatch.setattr(GramCounter, "add", stopped)
    assert main(command) == 130
    assert "Nothing was written" in capsys.readouterr().out
    assert not (tmp_path / "made").exists()
