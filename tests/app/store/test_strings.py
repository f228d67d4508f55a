"""The sentences with numbers and names."""

from __future__ import annotations

import pytest

from app.store import strings


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (strings.missing(1), strings.missing(1200)),
        (strings.incomplete(1), strings.incomplete(1200)),
        (strings.repaired(1, 0, 0, ""), strings.repaired(1200, 0, 0, "")),
        (strings.restored(1, 0), strings.restored(1200, 0)),
    ],
)
def test_one_is_singular_and_more_are_plural(one: str, many: str) -> None:
    assert one.startswith(("1 chat, project or document ", "1 chat was", "1 item was"))
    assert many.startswith(("1,200 chats, projects or documents ", "1,200 chats were", "1,200 items were"))


def test_what_is_lost_and_kept_is_said_only_if_there_is_any() -> None:
    assert "could not be read" not in strings.repaired(2, 0, 0, "") + strings.restored(2, 0)
    assert "3 could not be read." in strings.repaired(2, 0, 3, "")
    assert "3 could not be read from any backup." in strings.restored(2, 3)
    assert strings.repaired(2, 0, 0, "chats-damaged.db").endswith("kept as chats-damaged.db.")
    assert "kept as" not in strings.repaired(2, 0, 0, "")


@pytest.mark.parametrize(
    ("names", "begins"),
    [
        (["Fog"], "“Fog” could"),
        (["Fog", "Ice"], "“Fog” and “Ice” could"),
        (["Fog", "Ice", "Sun", "Sea"], "“Fog”, “Ice”, “Sun” and 1 more could"),
        (["Fog", ""], "“Fog” and 1 more could"),
        ([""], "One change could"),
        (["", ""], "2 changes could"),
    ],
)
def test_unsaved_changes_are_named(names: list[str], begins: str) -> None:
    assert strings.unsaved_taken(names).startswith(begins)
