"""The doctor: what is well, what is not, and an exit status that says which."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cli import doctor, main
from core.cli.doctor import Finding, report
from core.encoder.encoder import SHIPPED
from core.errors import MissingLibraryError
from tests.core.tables.support import FILE, Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_whole_installation_is_well(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(lambda: [Finding("Window", "ok", "there")]) == 0
    said = lines(capsys)
    subjects = {line[8:].split("  ")[0] for line in said if line.startswith(("ok", "note", "BROKEN"))}
    assert subjects == {
        *("Draftlight", "Packages", "Device", "Matrix product", "Exactness", "Starter model"),
        *("Encoder", "Config", "Data folder", "Cache folder", "Tables", "Window"),
    }
    assert said[-1] == "All that is needed is there."
    assert not home.exists(), "looking made a folder"


def test_what_is_broken_is_named_and_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def window() -> Iterator[Finding]:
        raise MissingLibraryError("libEGL is not there.", "Install it.")

    assert report(window) == 1
    said = lines(capsys)
    assert any(line.startswith("BROKEN  Window") and "libEGL is not there." in line for line in said)
    assert any(line.strip() == "Install it." for line in said)
    assert said[-1].startswith("1 of ")


def test_an_invalid_config_is_a_finding(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "config.toml").write_text("modle = 3")
    assert main(["doctor"]) == 1
    assert any(line.startswith("BROKEN  Config") and "“modle”" in line for line in lines(capsys))


def test_a_look_that_fails_does_not_end_the_others(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def window() -> Iterator[Finding]:
        yield Finding("Window", "ok", "so far")
        raise ZeroDivisionError("one by none")

    assert report(window) == 1
    said = "\n".join(lines(capsys))
    assert "so far" in said
    assert "The check failed: one by none." in said


def test_a_missing_package_is_broken(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_PACKAGES", ("mlx", "no-such-package"))
    assert report() == 1
    assert "BROKEN  Packages        no-such-package is not installed." in lines(capsys)


def test_a_slow_product_is_a_note_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_matmul_gflops", lambda: 4.0)
    assert report() == 0
    said = lines(capsys)
    index = next(i for i, line in enumerate(said) if line.startswith("note    Matrix product"))
    assert "4 GFLOP/s" in said[index]
    assert said[index + 1].strip() == "Something else is using the processor."


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_folder_that_cannot_be_written_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Read-only even for the superuser, who runs the tests in some containers.
    monkeypatch.setenv("DRAFTLIGHT_HOME", "/proc/self/fdinfo")
    assert report() == 1
    said = lines(capsys)
    assert any(line.startswith("BROKEN  Data folder") and "cannot be written" in line for line in said)
    assert any("DRAFTLIGHT_HOME" in line for line in said)


def test_a_damaged_table_is_noted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "data" / "tables"
    for previous in (False, True):
        saved = Home(folder).open().learn(20)
        saved.memory.save()
        saved.learn(30 * previous, seed=1).memory.close()
        (folder / FILE).write_bytes(b"\x10\0\0\0")
        assert report() == 0
        (line,) = (line for line in lines(capsys) if line.startswith("note    Tables"))
        assert FILE in line
        assert ("The previous save is used" in line) == previous
        assert (folder / FILE).is_file(), "looking moved it"


def test_an_encoder_that_is_damaged_is_noted(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report() == 0
    assert any(line.startswith("ok      Encoder         all-MiniLM-L6-v2") for line in lines(capsys))
    monkeypatch.setitem(SHIPPED, "encoder.safetensors", "0" * 64)
    assert report() == 0
    assert any(line.startswith("note    Encoder") and "SHA-256" in line for line in lines(capsys))


def test_a_starter_that_is_damaged_is_noted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = home / "data" / "models" / "SmolLM2-135M-Instruct"
    folder.mkdir(parents=True)
    assert report() == 0
    assert any(line.startswith("note    Starter model") and "manifest" in line for line in lines(capsys))


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform != "linux", reason="MLX uses OpenBLAS on Linux alone")
def test_how_many_threads_compute_is_said(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "core.cli", "doctor"],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "(1 threads)" in done.stdout


def test_exactness_says_on_how_many_rows_it_rests(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from core.machine.exactness import LEAST_ROWS, PROFILES, WIDTHS, Profile, WidthRows

    report(list)
    assert any("no model's block widths were compared yet" in line for line in lines(capsys))
    rows = tuple(WidthRows(width, LEAST_ROWS) for width in WIDTHS)
    PROFILES.save(Profile("k", "toy", rows, longest_tokens=2108))
    report(list)
    told = "steps in 15,000 compared rows of contexts of up to 2,108 tokens"
    assert any(told in line for line in lines(capsys))
