"""Secrets: in a private file, or in a keychain where there is one; never in an entry that is stored."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from core.system.paths import data_dir
from core.tools import secrets
from core.tools.messages import ServerEntry, ToolsError

ENTRY = ServerEntry("notes", "npx", env={"KEY": "very secret", "TOWN": "Bern"}, secrets=("KEY",))
REMOTE = ServerEntry(
    "far", url="https://host/", headers={"Authorization": "Bearer x"}, secrets=("Authorization",)
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))


def test_secrets_are_stored_apart_and_filled_in_again() -> None:
    for entry, name in ((ENTRY, "KEY"), (REMOTE, "Authorization")):
        kept = secrets.keep(entry)
        assert name not in {**kept.env, **kept.headers}
        assert secrets.filled(kept) == entry
        assert secrets.keep(kept) == kept  # without a new value the old one stays
        assert secrets.filled(kept) == entry
    assert secrets.place() == "file"
    path = data_dir() / "tool_secrets.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"very secret" in path.read_bytes()
    secrets.forget("notes", ["KEY", "NONE"])
    assert b"very secret" not in path.read_bytes()
    with pytest.raises(ToolsError, match="“KEY” of “notes” is missing"):
        secrets.filled(secrets.keep(ServerEntry("notes", "npx", secrets=("KEY",))))
    assert secrets.filled(secrets.keep(REMOTE)) == REMOTE


def test_a_damaged_file_is_named_and_left(tmp_path: Path) -> None:
    secrets.keep(ENTRY)
    path = data_dir() / "tool_secrets.json"
    path.write_bytes(b"{")
    for work in (lambda: secrets.keep(ENTRY), lambda: secrets.filled(ServerEntry("a", "b", secrets=("c",)))):
        with pytest.raises(ToolsError, match=r"tool_secrets\.json"):
            work()
    assert path.read_bytes() == b"{"


class Keychain:
    """Stands for the system's, which tests must not touch; has its three methods."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def _look(self) -> None:
        if self.is_locked:
            raise RuntimeError("it is locked")

    def get_password(self, service: str, name: str) -> str | None:
        self._look()
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self._look()
        self.held[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        self._look()
        del self.held[service, name]


def test_with_a_keychain_no_file_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    keychain = Keychain()
    monkeypatch.setattr(secrets, "_keychain", lambda: keychain)
    kept = secrets.keep(ENTRY)
    assert secrets.filled(kept) == ENTRY
    assert keychain.held == {("Draftlight tools", "notes/KEY"): "very secret"}
    secrets.forget("notes", ["KEY", "NONE"])
    assert keychain.held == {}
    assert not (data_dir() / "tool_secrets.json").exists()
    keychain.is_locked = True
    with pytest.raises(ToolsError, match="locked"):
        secrets.keep(ENTRY)
