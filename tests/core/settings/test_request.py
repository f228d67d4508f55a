"""Which seed an answer gets."""

from __future__ import annotations

from core.settings import Settings, assign_all
from core.settings.request import drawn, drawn_again


def with_seed(seed: int, new_seed: str) -> Settings:
    return assign_all(Settings(), [("sampling.seed", seed), ("sampling.new_seed", new_seed)])


def test_the_set_seed_is_used_unless_each_answer_has_its_own() -> None:
    for mode in ("regenerate", "never"):
        assert drawn(with_seed(7, mode)) == with_seed(7, mode)
    each = drawn(with_seed(7, "always"))
    assert each.sampling.seed != 7
    # What was drawn can be asked for again, and is not drawn once more on its way.
    assert drawn(each) == each
    assert drawn_again(each) == each


def test_another_version_has_another_seed_unless_it_is_to_stay() -> None:
    for mode in ("regenerate", "always"):
        assert drawn_again(with_seed(7, mode)).sampling.seed != 7
    assert drawn_again(with_seed(7, "never")) == with_seed(7, "never")
