"""A home folder that version 0.1.0 wrote opens with everything."""

from __future__ import annotations

import shutil
from pathlib import Path

from app.store.chat_files import from_json
from app.store.library import Library
from app.store.preferences import PreferencesFile
from tests.app.store.chats import chat_of

_HOME = Path(__file__).parents[2] / "fixtures" / "home-0.1.0"


def test_every_chat_of_0_1_0_is_there_and_new_ones_are_saved(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(_HOME, tmp_path / "home"))
    expected = {chat.id: chat for chat in from_json((folder / "expected.json").read_bytes())}
    assert len(expected) == 7
    new = chat_of(77)
    library = Library(folder)
    assert library.condition.state == "whole"
    assert {summary.id for summary in library.summaries()} == set(expected)
    assert {chat_id: library.load(chat_id) for chat_id in expected} == expected
    longer = library.load("c1").renamed("Once more")
    library.save(longer)
    library.save(new)
    assert library.close()
    again = Library(folder)
    found = again.load("c1"), again.load(new.id), [hit.chat_id for hit in again.search("times")]
    assert again.close()
    assert found == (longer, new, ["attached"])


def test_preferences_of_0_1_0_hold(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(_HOME, tmp_path / "home"))
    preferences = PreferencesFile(folder)
    assert preferences.problem == ""
    assert preferences.now.open_chat == "attached"
    assert preferences.now.window is not None
    assert preferences.now.window.width == 1300
    assert preferences.defaults.sampling.temperature == 0.3
