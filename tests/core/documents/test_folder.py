"""Folders: what of them is read, what is left out and why."""

from __future__ import annotations

import os
from pathlib import Path
from unicodedata import normalize

import pytest

from core.documents import folder as module
from core.documents.folder import list_folder
from core.documents.reading import read_document, shown_name
from core.errors import RequestError


def names(folder: Path, files: tuple[Path, ...]) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in files]


def test_files_come_in_order_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    for name in ("10.md", "2.md", "B/b.txt", "a/z.txt", ".git/config", ".hidden", "node_modules/x/y.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    listing = list_folder(tmp_path)
    assert names(tmp_path, listing.files) == ["2.md", "10.md", "a/z.txt", "B/b.txt"]
    assert {(each.name, each.reason) for each in listing.skipped} == {
        (".git", "hidden"),
        (".hidden", "hidden"),
        ("link", "a link to something else"),
        ("round", "a link to something else"),
        ("node_modules", "a folder with generated files"),
        ("pipe", "not a file"),
    }


def test_limits_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        (tmp_path / f"{number}.md").write_text("x")
    deep = tmp_path / "/".join(["d"] * 16)
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    listing = list_folder(tmp_path, most_files=6)
    assert names(tmp_path, listing.files) == [f"{number}.md" for number in range(6)]
    assert [(each.name, each.reason) for each in listing.skipped] == [
        ("6.md", "more than 6 files"),
        ("7.md", "more than 6 files"),
        ("/".join(["d"] * 13), "too many folders inside each other"),
    ]
    monkeypatch.setattr(module, "MOST_ENTRIES", 5)
    listing = list_folder(tmp_path)
    assert len(listing.files) <= 5
    assert listing.skipped[-1].reason == "the folder has more than 5 files and folders"


@pytest.mark.parametrize("text", ["Übung für Café", "한국어", "が", "e\u0301\u0323"])
def test_names_are_composed_as_people_type_them(tmp_path: Path, text: str) -> None:
    """Some file systems of macOS, and archives made there, decompose names."""
    folder = tmp_path / normalize("NFD", text)
    folder.mkdir()
    (folder / normalize("NFD", f"{text}.txt")).write_text("x")
    (found,) = list_folder(tmp_path).files
    assert module.name_in(found, tmp_path) == normalize("NFC", f"{text}/{text}.txt")
    assert shown_name(folder) == normalize("NFC", text)


def test_names_that_are_no_text_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff\n.txt")).write_text("x")
    os.mkfifo(tmp_path / os.fsdecode(b"p\xff"))
    listing = list_folder(tmp_path)
    assert [each.name for each in listing.skipped] == ["p\ufffd"]
    assert module.name_in(listing.files[0], tmp_path) == "a\ufffd\ufffd.txt"


def test_a_folder_that_cannot_be_read_is_refused_and_one_that_is_not_wanted_is_left(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="The folder “gone” cannot be read: No such file"):
        list_folder(tmp_path / "gone")
    (tmp_path / "a.md").write_text("x")
    assert list_folder(tmp_path, lambda: False).files == ()


def test_a_folder_that_a_mac_shows_as_one_file_is_one_document(tmp_path: Path) -> None:
    for name in (
        "Letter.rtfd/TXT.rtf",
        "Letter.rtfd/plan.png",
        "Inbox.mbox/mbox",
        "Empty.rtfd/other",
        "a.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{\\rtf1 The rent is 940.}")
    found = names(tmp_path, list_folder(tmp_path).files)
    assert sorted(found) == ["Empty.rtfd/other", "Inbox.mbox/mbox", "Letter.rtfd/TXT.rtf", "a.txt"]
    letter = tmp_path / "Letter.rtfd"
    assert list_folder(letter).files == (letter / "TXT.rtf",)
    assert read_document(letter).text == "The rent is 940."
