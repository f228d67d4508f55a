"""Numbers as cells show them, where no case has their format."""

from __future__ import annotations

import pytest

from core.documents.number_formats import number_text


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (0.5, "?/8", "4/8"),
        (2.5, "# ?/4", "2 2/4"),
        (2.5, "# ?/?", "2 1/2"),
        (0.333, "# ??/??", "1/3"),
        (3.0, "# ?/16", "3"),
        (31, ";;;", ""),
        (-31, ";;;", ""),
        (0, "0;-0;;@", ""),
    ],
)
def test_fractions_and_formats_that_show_nothing(value: float, code: str, shown: str) -> None:
    assert number_text(value, code) == shown
