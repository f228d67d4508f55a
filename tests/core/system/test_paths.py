"""Folders from the environment: a shell does not expand `~` in quotes or in a desktop entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.system.paths import cache_dir, config_dir, data_dir


@pytest.mark.parametrize("home", ["~/drafts", "drafts", "~no-such-user-here/drafts"])
def test_the_home_folder_is_expanded_and_absolute(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRAFTLIGHT_HOME", home)
    expected = tmp_path / home.removeprefix("~/")
    assert [config_dir(), data_dir(), cache_dir()] == [expected, expected / "data", expected / "cache"]


def test_folders_of_the_system_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAFTLIGHT_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "~/xdg")
    for folder in (config_dir(), data_dir(), cache_dir()):
        assert folder.is_relative_to(tmp_path)
        assert "~" not in str(folder)
