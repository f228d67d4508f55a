"""Which fixtures are read as their pages show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.kinds import Fixture, fixtures, found, right

_FORM = Fixture("form", "owner/name", "form.pdf", ["Name:", "Ada", "City", "Ada"], ["Secret"])


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("Name: Ada\nCity\tA d a", True),
        ("Ada Name: City Ada", False),
        ("Name: Ada City", False),
        ("Name: Ada City Ada. Secret", False),
    ],
)
def test_phrases_are_there_in_their_order(text: str, is_read: bool) -> None:
    assert _FORM.is_read(text) is is_read


def test_only_fixtures_that_are_there_count(tmp_path: Path) -> None:
    known = fixtures()
    assert len({each.name for each in known}) == len(known) == 32
    path = tmp_path / "deeper" / known[0].name
    path.parent.mkdir()
    path.write_bytes(b"")
    files = found([tmp_path])
    assert files == {known[0].name: path}
    read = right(files, lambda path: " ".join(known[0].in_order))
    assert read == [(known[0], True)]
