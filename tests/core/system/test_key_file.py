"""The key in its file: nobody else reads it, and it is never overwritten by surprise."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from core.system.files import KeyFileError, key_of, new_key, read_key, write_key


def test_it_is_its_owners_from_the_first_moment(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "key"
    before = os.umask(0)
    try:
        key, made = key_of(path)
    finally:
        os.umask(before)
    assert made
    assert path.stat().st_mode & 0o777 == 0o600
    assert key_of(path) == (key, False)
    assert new_key() != new_key()


def test_a_new_one_replaces_the_file_and_no_link_leads_it_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    path = tmp_path / "key"
    path.symlink_to(elsewhere)
    write_key(path, new_key())
    assert elsewhere.read_text() == "mine"
    assert not path.is_symlink()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_one_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    write_key(path, new_key())
    path.chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        read_key(path)


@pytest.mark.parametrize("text", ["", "short", "two words that are long enough", "ü" * 20, "\0" * 3])
def test_what_is_no_key_is_refused_without_being_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeyFileError) as caught:
        read_key(path)
    assert not text or text not in str(caught.value).replace(str(path), "")


def test_a_folder_is_no_key_file(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="Cannot read"):
        read_key(tmp_path)


def test_a_full_disk_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "key"
    before = key_of(path)[0]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(KeyFileError, match="free space"):
            write_key(path, new_key())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert read_key(path) == before
    assert list(tmp_path.iterdir()) == [path]
