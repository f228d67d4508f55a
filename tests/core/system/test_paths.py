"""Folders from the environment: a shell does not expand `~` in quotes or in a desktop entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.system.paths import cache_dir, config_dir, data_dir


def test_the_home_folder_is_expanded_for_every_kind_of_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRAFTLIGHT_HOME", "~/drafts")
    assert [config_dir(), data_dir(), cache_dir()] == [
        tmp_path / "drafts",
        tmp_path / "drafts" / "data",
        tmp_path / "drafts" / "cache",
    ]


def test_a_relative_home_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAFTLIGHT_HOME", "drafts")
    assert config_dir() == tmp_path / "drafts"


def test_the_name_of_an_unknown_user_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", "~no-such-user-here/drafts")
    assert config_dir().name == "drafts"


def test_folders_of_the_system_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAFTLIGHT_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "~/xdg")
    for folder in (config_dir(), data_dir(), cache_dir()):
        assert folder.is_relative_to(tmp_path)
        assert "~" not in str(folder)
