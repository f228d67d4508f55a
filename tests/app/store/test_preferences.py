"""What the window remembers: whole or not at all, patient with other versions."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import msgspec
import pytest

from app.session.chats.presets import Override, apply, differences
from app.store import strings
from app.store.preferences import Preferences, PreferencesFile, WindowPlace
from core.settings import Settings, assign


def test_they_come_back(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    assert file.now == Preferences()
    file.change(model="models/\ud83d")  # half an emoji
    assert file.flush()
    assert PreferencesFile(tmp_path).now.model == "models/\ufffd"
    file.change(model="starter", open_chat="c1", window=WindowPlace(1, 2, 1300, 800, True, False, True))
    file.set_defaults(assign(Settings(), "sampling.temperature", 0.7))
    assert file.flush()
    again = PreferencesFile(tmp_path)
    assert again.now == file.now
    assert again.defaults.sampling.temperature == 0.7
    assert again.now.defaults == (Override("sampling.temperature", 0.7),)
    assert [path.name for path in tmp_path.iterdir()] == ["preferences.json"]


def test_a_change_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An fsync on the UI thread stopped the window at each change of a setting."""
    release, passed = threading.Event(), []
    monkeypatch.setattr("core.system.files.os.fsync", lambda number: passed.append(release.wait(60)))
    file = PreferencesFile(tmp_path)
    for number in range(20):
        file.change(open_chat=f"c{number}")
    assert not file.flush(0.05)
    release.set()
    assert file.flush()
    assert all(passed)
    assert PreferencesFile(tmp_path).now.open_chat == "c19"


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PreferencesFile().change(open_chat="c1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"open_chat": "c', "truncated"),
        (b'{"open_chat": "\xff"}', "UTF-8"),
        pytest.param(b'{"open_chat": ' + b"[" * 200_000, "nested", id="deep"),
    ],
)
def test_a_damaged_file_is_set_aside_in_words(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "preferences.json").write_bytes(data)
    file = PreferencesFile(tmp_path)
    assert file.now == Preferences()
    assert said in file.problem
    assert (tmp_path / "preferences-damaged.json").read_bytes() == data
    file.change(open_chat="c2")
    assert file.flush()
    assert PreferencesFile(tmp_path).now.open_chat == "c2"


def test_what_is_not_known_or_allowed_is_left_out(tmp_path: Path) -> None:
    raw = {
        "version": 4,
        "mood": 1,
        "open_chat": "c1",
        "settings": {"look": {"scheme": "pink", "tint": "hover"}, "mood": 2},
        "window": {"x": 3_000_000_000, "y": 0, "width": 900, "height": 700},  # beyond any desktop
    }
    raw["defaults"] = [
        {"key": "sampling.temperature", "value": 0.5},
        {"key": "sampling.gone", "value": 1},
        {"key": "sampling.top_p", "value": "much"},
    ]
    (tmp_path / "preferences.json").write_bytes(msgspec.json.encode(raw))
    file = PreferencesFile(tmp_path)
    assert file.now.open_chat == "c1"
    assert file.now.settings.look.scheme == "system"
    assert file.now.settings.look.token_colors == "drafts"
    assert file.now.window is None
    assert file.defaults == assign(Settings(), "sampling.temperature", 0.5)


def test_a_file_in_the_way_is_a_problem_and_no_end(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    file = PreferencesFile(tmp_path / "folder")
    told: list[str] = []
    file.listen(told.append)
    file.change(open_chat="c1")
    assert not file.flush()
    file.change(open_chat="c2")
    assert not file.flush()
    assert told == [file.problem]  # once
    assert "Errno" not in file.problem
    assert file.problem != strings.DISK_FULL
    file.change(open_chat="c1")
    (tmp_path / "folder").unlink()
    file.change(open_chat="c3")
    file.change(open_chat="c1")
    assert file.flush()
    assert not file.problem
    assert told[1:] == [""]
    assert PreferencesFile(tmp_path / "folder").now.open_chat == "c1"
    assert file.now.open_chat == "c1"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(*_: object) -> None:
        raise OSError(number, "x")

    monkeypatch.setattr("app.store.preferences.write_atomic", full)
    file = PreferencesFile(tmp_path)
    file.change(open_chat="c1")
    assert not file.flush()
    assert file.problem == strings.DISK_FULL
    monkeypatch.undo()
    assert file.close()
    assert PreferencesFile(tmp_path).now.open_chat == "c1"


def test_overrides_are_the_differences() -> None:
    defaults = assign(Settings(), "sampling.temperature", 0.7)
    settings = assign(defaults, "ngram_simple.k", 5)
    overrides = differences(settings, defaults)
    assert overrides == (Override("ngram_simple.k", 5),)
    assert apply(defaults, overrides) == (settings, ())
    warmer = assign(defaults, "sampling.temperature", 0.9)
    assert apply(warmer, overrides)[0].sampling.temperature == 0.9


def test_an_override_that_is_wrong_by_now_spoils_no_other() -> None:
    wrong = Override("sampling.temperature", "warm")
    settings, refused = apply(Settings(), (Override("ngram_simple.k", 5), wrong, Override("a.b", 1)))
    assert settings == assign(Settings(), "ngram_simple.k", 5)
    assert refused == (wrong, Override("a.b", 1))


def test_a_default_that_no_setting_takes_does_not_stop_the_others_from_being_kept(tmp_path: Path) -> None:
    deep = '{"a": ' * 400 + "1" + "}" * 400
    (tmp_path / "preferences.json").write_text(
        '{"defaults": [{"key": "a.b", "value": ' + deep + '}, {"key": "ngram_simple.k", "value": 5}]}'
    )
    file = PreferencesFile(tmp_path)
    assert file.now.defaults == (Override("ngram_simple.k", 5),)
    file.change(open_chat="c1")
    assert file.flush()
    assert PreferencesFile(tmp_path).now == file.now
