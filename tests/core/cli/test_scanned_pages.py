"""`draftlight generate --document` with pages that have no text."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from core.cli import main
from tests.core.documents.scanned import GREEN, Scan, write_scanned
from tests.core.seeing import write_seeing_model

PAGES = ["The harbor is old.", *[Scan()] * 9, "The bridge is new.", *[Scan(GREEN)] * 3]


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "seeing"
    write_seeing_model(folder)
    return folder


def generate(
    capsys: pytest.CaptureFixture[str], model: Path, document: Path, question: str, *more: str
) -> tuple[list[dict[str, Any]], str]:
    """The lines of JSON, and stderr."""
    arguments = ["--model", str(model), "--max-tokens", "3", "--json", "--document", str(document), *more]
    main(["generate", *arguments, "--prompt", question])
    found = capsys.readouterr()
    return [json.loads(line) for line in found.out.splitlines()], found.err


def images(lines: list[dict[str, Any]]) -> list[str]:
    return [line["name"] for line in lines if line["type"] == "image_read"]


def changes(lines: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    found = lines[-1]["effective"]["changes"]
    return [(each["asked"], each["used"], each["reason"]) for each in found if each["setting"] == "images"]


@pytest.mark.sweep
def test_the_pages_nearest_to_the_question_are_read_and_the_others_named(
    seeing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = write_scanned(tmp_path / "scan.pdf", PAGES)
    lines, told = generate(capsys, seeing, document, "Which bridge?")
    assert images(lines) == [f"scan.pdf, page {number}" for number in (6, 7, 8, 9, 10, 12, 13, 14)]
    assert lines[-1]["type"] == "finished"
    assert lines[-1]["stats"]["image_tokens"] > 0
    ((wanted, used, reason),) = changes(lines)
    assert (wanted, used) == ("12 pages", "8 pages")
    assert reason.startswith("pages 2 to 5 of scan.pdf were not read: they are images, and at most 8 are")
    assert "scan.pdf: reading pages 6 to 10, 12 to 14 as images" in told


@pytest.mark.sweep
def test_a_file_of_scans_alone_is_read(
    seeing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = write_scanned(tmp_path / "scan.pdf", [Scan(), Scan(turn=90)])
    before = set(Path(tempfile.gettempdir()).glob("draftlight-served-images-*"))
    lines, _ = generate(capsys, seeing, document, "What is it?")
    assert images(lines) == ["scan.pdf, page 1", "scan.pdf, page 2"]
    sizes = [(line["width"], line["height"]) for line in lines if line["type"] == "image_read"]
    assert sizes[0] == sizes[1][::-1]
    assert changes(lines) == []
    assert set(Path(tempfile.gettempdir()).glob("draftlight-served-images-*")) <= before


def test_a_model_that_does_not_see_reads_the_marks_and_refuses_a_file_of_scans_alone(
    toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = write_scanned(tmp_path / "mixed.pdf", ["The harbor is old.", Scan()])
    lines, told = generate(capsys, toy_folder, mixed, "What is it?")
    assert lines[-1]["type"] == "finished"
    assert (images(lines), changes(lines)) == ([], [])
    assert "mixed.pdf: Not in the text: 1 scanned page (page 2)" in told
    scans = write_scanned(tmp_path / "scan.pdf", [Scan()])
    lines, _ = generate(capsys, toy_folder, scans, "What is it?")
    assert lines[-1]["type"] == "failed"
    assert "“scan.pdf” holds no text" in lines[-1]["message"]
    assert "a model that sees images" in lines[-1]["hint"]


def test_a_page_that_cannot_be_drawn_is_told_and_the_others_are_read(
    seeing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.documents.limits import PageLimits

    document = write_scanned(tmp_path / "scan.pdf", ["The harbor is old.", Scan(), Scan()])
    monkeypatch.setattr("core.documents.client.PageLimits", lambda: PageLimits(memory_bytes=1_000_000))
    lines, told = generate(capsys, seeing, document, "What is it?")
    assert images(lines) == []
    assert "Page 2 of “scan.pdf” cannot be shown to the model: " in told
    assert "Page 3 of “scan.pdf” cannot be shown to the model: " in told
    ((_, used, reason),) = changes(lines)
    assert used == "0 pages"
    assert reason.startswith("pages 2 to 3 of scan.pdf were not read")


def test_a_short_context_holds_fewer_pages(
    seeing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = write_scanned(tmp_path / "scan.pdf", [Scan()] * 3)
    lines, _ = generate(capsys, seeing, document, "What?", "--set", "prefill.context_tokens=250")
    assert 0 < len(images(lines)) < 3
    ((_, used, _),) = changes(lines)
    assert used == f"{len(images(lines))} pages"
