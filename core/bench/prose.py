"""Generated filler prose about a harbour town, equal for equal seeds.

Paragraphs are varied enough that a scorer cannot recognise an inserted sentence by its style.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

_PEOPLE = (
    *("the harbour master", "the baker", "the ferry captain", "the schoolteacher", "the old carpenter"),
    *("the postwoman", "the night watchman", "the doctor", "the apprentice", "the librarian", "the cook"),
    *("the clockmaker", "the surveyor", "the gardener", "the lighthouse keeper", "the choir leader"),
)
_PLACES = (
    *("the north quay", "the market hall", "the upper road", "the boathouse", "the old customs shed"),
    *("the chapel steps", "the lower mill", "the fish dock", "the school yard", "the tram stop"),
    *("the rope walk", "the salt store", "the town bridge", "the reading room", "the orchard"),
)
_THINGS = (
    *("a crate of lemons", "a coil of rope", "two tins of paint", "the repaired lantern", "a new ladder"),
    *("the missing sequence", "a sack of flour", "three folding chairs", "a barrel of nails", "an old map"),
    *("the brass bell", "a bundle of sails", "the spare oars", "a box of candles", "the winter timetable"),
)
_DEEDS = (
    *("brought {thing} to {place}", "looked for {thing} near {place}", "left {thing} behind {place}"),
    *(
        "sold {thing} at {place}",
        "asked whether {thing} still stood by {place}",
        "painted {thing} outside {place}",
    ),
    *("traded {thing} for bread at {place}", "carried {thing} from {place} before breakfast"),
    *("promised to return {thing} to {place}", "found {thing} under a tarpaulin at {place}"),
)
_TIMES = (
    *("in the morning", "before the tide turned", "after supper", "on the first dry day of the week"),
    *("while the rain held off", "at the end of the shift", "shortly before dusk", "when the bell had rung"),
)
_REMARKS = (
    *("Nobody thought it strange", "It took longer than it should have", "The weather stayed grey"),
    *("A few people stopped to watch", "There was talk of it for a day or two", "The gulls were loud"),
    *("It was the third time that month", "Somebody laughed and somebody else did not"),
    *("The work was done before noon", "A dog slept through all of it", "The wind came round to the west"),
)
_REASONS = (
    *("because the cart had lost a wheel", "since the shop was closed", "because the letter had said so"),
    *("although it was not yet paid for", "so that the children could see it", "in spite of the cold"),
    *("because the key did not fit", "as had been agreed in spring", "though no one had asked for it"),
)


def paragraphs(rng: Random) -> Iterator[str]:
    """Endless paragraphs of three to six sentences."""
    while True:
        yield " ".join(_sentence(rng) for _ in range(rng.randint(3, 6)))


def _sentence(rng: Random) -> str:
    def pick(words: tuple[str, ...]) -> str:
        return words[rng.randrange(len(words))]

    if rng.random() < 0.25:
        return f"{pick(_REMARKS)}, and {pick(_PEOPLE)} went back to {pick(_PLACES)}."
    deed = pick(_DEEDS).format(thing=pick(_THINGS), place=pick(_PLACES))
    who, when = pick(_PEOPLE), pick(_TIMES)
    if rng.random() < 0.5:
        return f"{when.capitalize()} {who} {deed}, {pick(_REASONS)}."
    return f"{who.capitalize()} {deed} {when}."
