"""`draftlight tables` on the command line: what it prints, what it changes, what it refuses."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from core.cli import main
from core.events import TableInfo, TableList
from core.tables.prebuilt import GRAMS, save_grams
from tests.core.tables.support import FAMILY, FILE, OTHER, Home, content, files, fill
from tests.tuning.gram_count import GramCounter, Pruning


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two saves of one family's table, in a home of its own."""
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    home = Home(tmp_path / "home" / "data" / "tables").open().learn(20)
    home.memory.save()
    home.learn(30, seed=1).memory.close()
    return home.folder


def used(folder: Path) -> int:
    home = Home(folder).open()
    home.memory.close()
    return home.said[0].tables[0].figures.used if home.said[0].tables else 0


def test_list_and_show(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "list"]) == 0
    out = capsys.readouterr().out
    assert "Name of ab" in out
    assert "50 of 4,096 (1.2%)" in out
    assert main(["tables", "list", "--json"]) == 0
    listed = msgspec.json.decode(capsys.readouterr().out, type=TableList)
    assert [(info.family, info.figures.used) for info in listed.tables] == [(FAMILY, 50)]
    assert main(["tables", "show", "name OF ab"]) == 0
    assert FAMILY in capsys.readouterr().out
    assert main(["tables", "show", FAMILY[:8], "--json"]) == 0
    (info,) = msgspec.json.decode(capsys.readouterr().out, type=tuple[TableInfo, ...])
    assert info.has_previous


def test_a_family_goes_by_what_people_call_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(folder)
    home.memory.open(OTHER, "SmolLM2-135M-Instruct", 1000)
    fill(home.tables.table(OTHER, 16, 2**12), 5)
    home.memory.close()
    refused = folder / f"{OTHER[:16]}-n8-4096.safetensors.refused-20261121-120000"
    refused.write_bytes(b"damaged")
    assert main(["tables", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"SmolLM2  {' ' * 3}") and OTHER[:12] in line for line in lines)
    assert f"Cannot be used: SmolLM2, {refused.name}" in lines
    for name in ("smollm2", "SmolLM2-135M-Instruct", OTHER[:8]):
        assert main(["tables", "show", name]) == 0
        assert "SmolLM2-135M-Instruct" in capsys.readouterr().out
    assert main(["tables", "export", "SmolLM2", str(tmp_path / "copy")]) == 0
    assert capsys.readouterr().out.startswith("Exported SmolLM2 to ")


def test_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    assert main(["tables", "list"]) == 0
    assert "No tables yet" in capsys.readouterr().out
    assert main(["tables", "show", "Toy"]) == 1
    assert "no family that has tables" in capsys.readouterr().err
    assert main(["tables", "reset", "all", "--yes"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_save_repairs_and_load_goes_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "load", "Name of ab"]) == 0
    assert "50 entries" in capsys.readouterr().out
    (folder / FILE).write_bytes(b"damaged")
    assert main(["tables", "save", "Name of ab"]) == 0
    captured = capsys.readouterr()
    assert "Saved Name of ab: 20 entries" in captured.out
    assert "set aside" in captured.err
    assert used(folder) == 20
    Home(folder).open().learn(9, seed=5).memory.close()
    assert used(folder) == 29
    assert main(["tables", "load", FAMILY[:12], "--previous"]) == 0
    assert used(folder) == 20
    assert main(["tables", "load", FAMILY[:12], "--previous"]) == 1
    assert "no previous generation" in capsys.readouterr().err


def test_export_and_import(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.table"
    assert main(["tables", "export", "Name of ab", str(out)]) == 0
    assert main(["tables", "export", "Name of ab", str(out)]) == 1
    assert "already exists" in capsys.readouterr().err
    assert main(["tables", "export", "Name of ab", str(out), "--replace"]) == 0
    assert main(["tables", "export", "Name of ab", str(out), "--slots", "8192"]) == 1
    assert main(["tables", "reset", "Name of ab", "--yes"]) == 0
    assert files(folder) == []
    assert main(["tables", "import", str(out)]) == 0
    assert used(folder) == 50
    assert main(["tables", "import", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err


def test_several_tables_of_a_family_are_told_apart(folder: Path, tmp_path: Path) -> None:
    home = Home(folder).open()
    fill(home.tables.table(FAMILY, 8, 2**13), 5)
    home.learn(1, seed=7).memory.close()
    assert main(["tables", "export", "Name of ab", str(tmp_path / "y")]) == 1
    assert main(["tables", "export", "Name of ab", str(tmp_path / "y"), "--n", "8"]) == 0


def test_reset_asks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "reset", "Name of ab"]) == 1
    assert "Add --yes" in capsys.readouterr().err
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda self: True})
    for typed in ("n\n", ""):  # Ctrl-D
        monkeypatch.setattr("sys.stdin", terminal(typed))
        assert main(["tables", "reset", "Name of ab"]) == 1
        assert used(folder) == 50
    monkeypatch.setattr("sys.stdin", terminal("y\n"))
    assert main(["tables", "reset", "all"]) == 0
    assert files(folder) == []


def test_a_running_draftlight_keeps_its_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = Home(folder).open()
    for command in (["reset", "all", "--yes"], ["save", "Name of ab"], ["import", str(folder / FILE)]):
        assert main(["tables", *command]) == 1
        assert "another Draftlight" in capsys.readouterr().err
    assert main(["tables", "load", "Name of ab"]) == 0, "reading is allowed"
    running.memory.close()


def test_an_ambiguous_name_is_refused_with_the_known_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(folder)
    home.memory.open(OTHER, "Name of ab", 1000)
    fill(home.tables.table(OTHER, 16, 2**12), 5)
    home.memory.close()
    assert content(Home(folder).open().table)
    assert main(["tables", "show", "Name of ab"]) == 1
    error = capsys.readouterr().err
    assert "several families" in error
    assert FAMILY[:12] in error
    assert OTHER[:12] in error
    assert main(["tables", "show", OTHER[:12]]) == 0


def test_an_answer_in_the_terminal_teaches_and_is_told_not_to(
    tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    ask = ["generate", "--model", str(toy_folder), "--prompt", "hello " * 4, "--max-tokens", "30"]
    mod = ["--drafter", "ngram-mod", "--set", "ngram_mod.n=4"]
    assert main([*ask, *mod, "--set", "tables.learn=false"]) == 0
    assert files(tmp_path / "data" / "tables") == []
    assert main([*ask, *mod]) == 0
    assert len(files(tmp_path / "data" / "tables")) == 1
    capsys.readouterr()
    assert main(["tables", "list"]) == 0
    assert toy_folder.name in capsys.readouterr().out


def test_reset_erases_what_was_built_and_nothing_of_another_family(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = folder / "built"
    built.mkdir()
    counter = GramCounter(3)
    counter.add([], [1, 2, 3] * 9)
    table = counter.table(Pruning())
    for family, stem in ((FAMILY, "ours"), (OTHER, "theirs")):
        save_grams(table, built / f"{stem}{GRAMS.suffix}", family=family, family_name=stem, learned_from="x")
    (built / f"damaged{GRAMS.suffix}").write_bytes(b"what was said")
    (built / ".ours.grams.safetensors.1.tmp").write_bytes(b"what was said")
    assert main(["tables", "reset", FAMILY[:12], "--yes"]) == 0
    assert sorted(path.name for path in built.iterdir()) == [f"theirs{GRAMS.suffix}"]
    assert [name for name in files(folder) if name != "built"] == []
    assert main(["tables", "reset", "theirs", "--yes"]) == 0  # it has nothing but what was built
    assert list(built.iterdir()) == []
    (folder / FILE).write_bytes(b"damaged")
    (folder / f"{OTHER[:16]}-n16-4096.safetensors.refused-20260101-000000").write_bytes(b"damaged")
    assert main(["tables", "reset", OTHER, "--yes"]) == 0
    assert [name for name in files(folder) if name != "built"] == [FILE]
    for left in (folder / FILE, built / f"damaged{GRAMS.suffix}"):
        left.write_bytes(b"damaged")
        assert main(["tables", "reset", "all", "--yes"]) == 0
        assert not left.exists()
    capsys.readouterr()
    assert main(["tables", "reset", "all", "--yes"]) == 0
    assert "There are no tables" in capsys.readouterr().out
