"""Follow lets go when the reader leaves the end, and comes back with the reader."""

from __future__ import annotations

from app.chat.entry_column import Follow


def test_follow() -> None:
    follow = Follow()
    assert follow.following
    assert follow.scrolled(90, 100)
    assert not follow.following
    assert not follow.scrolled(50, 100)
    assert follow.scrolled(100, 100)
    assert follow.following
    follow.scrolled(0, 100)
    assert follow.follow()
    assert not follow.follow()
