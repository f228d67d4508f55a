"""Seeds that are drawn: who asks for an answer that shall be another one gets another seed.

What was drawn stands in the settings of the answer, so that it can be asked for again.
"""

from __future__ import annotations

import secrets

from core.settings.declaration import assign_all
from core.settings.root import Settings

SEEDS = 2**31


def new_seed() -> int:
    """Any that is allowed."""
    return secrets.randbelow(SEEDS)


def drawn(settings: Settings) -> Settings:
    """`settings` with a seed of this answer's own, if each answer is to have one; drawn once, it stays."""
    if settings.sampling.new_seed != "always":
        return settings
    return assign_all(settings, [("sampling.seed", new_seed()), ("sampling.new_seed", "never")])


def drawn_again(settings: Settings) -> Settings:
    """`settings` for another answer to the same question: with another seed, unless it is to stay."""
    if settings.sampling.new_seed == "never":
        return settings
    return assign_all(settings, [("sampling.seed", new_seed())])
