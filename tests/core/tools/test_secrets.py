"""Secrets: in a private file, or in a keychain where there is one; never in an entry that is stored."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.system.paths import data_dir
from core.tools import secrets
from core.tools.masks import MASK
from core.tools.messages import ServerEntry, ToolsError
from tests.core.tools.test_masks import FORMS, SECRETS

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


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(FORMS), st.integers(1, 6), st.lists(SECRETS, min_size=6, max_size=6, unique=True))
def test_secrets_in_arguments_are_stored_apart_and_filled_in_wherever_they_stand(
    forms: list[tuple[str, ...]], count: int, values: list[str]
) -> None:
    args = [each.format(value) for form, value in zip(forms[:count], values) for each in form]
    entry = ServerEntry("notes", "npx", ("-y", *args, "--verbose"), {"TOWN": "Bern"})
    kept = secrets.keep(entry)
    stored = msgspec.json.encode(kept).decode()
    assert not any(value in stored for value in values)
    assert secrets.without_values(entry) == kept
    assert (secrets.missing(entry), len(secrets.missing(kept))) == ((), count)
    assert secrets.filled(kept) == entry
    moved = replace(kept, args=("--first", *kept.args))
    assert secrets.filled(moved).args == ("--first", *entry.args)
    secrets.forget("notes", secrets.missing(kept))
    with pytest.raises(ToolsError, match="of “notes” is missing"):
        secrets.filled(kept)


def test_a_secret_is_put_only_into_the_argument_that_it_was_entered_for() -> None:
    database = ServerEntry("data", "uvx", ("pg", "postgres://me:hidden1@host/db", "--key", "hidden2"))
    kept = secrets.keep(database)
    assert kept.args == ("pg", f"postgres://me:{MASK}@host/db", "--key", MASK)
    for other in (
        replace(kept, args=("pg", f"postgres://me:{MASK}@elsewhere/db", "--key", MASK)),
        replace(kept, args=("pg", f"postgres://me:{MASK}@host/db", "--url", MASK)),
    ):
        with pytest.raises(ToolsError, match="of “data” is missing"):
            secrets.filled(other)
    renamed = secrets.with_stored(replace(kept, name="new"), "data")
    assert renamed == replace(database, name="new")
    remote = ServerEntry("far", url="https://host/mcp?api_key=hidden3&a=1", headers={"X": "y"})
    assert secrets.keep(remote).url == f"https://host/mcp?api_key={MASK}&a=1"
    assert secrets.filled(secrets.keep(remote)) == remote


def test_equal_arguments_and_long_ones_have_secrets_of_their_own() -> None:
    config = f'{{"token": "three3", "a": "{"b" * 300}"}}'
    entry = ServerEntry("twins", "npx", ("-H", "X-Key: one1", "-H", "X-Key: two2", "--config", config))
    kept = secrets.keep(entry)
    assert secrets.filled(kept) == entry
    assert max(map(len, secrets.missing(kept))) < 130


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
