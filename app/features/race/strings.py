"""UI strings of the race."""

from __future__ import annotations

from app.gauges.figures import seconds

TITLE = "Race"
SUBTITLE = "Recorded one after the other with the same seed"
START = "Start"
RUN_AGAIN = "Run Again"
STOP = "Stop"
DONE = "Done"

QUESTION = "Question"
DRAFTER = "Drafter"
AT_MOST = "At most"
TOKENS = "tokens"
SEED = "Seed {seed}"

PLAIN = "Plain decoding"
DRAFTED = "With drafting"
NO_DRAFTER = "No drafter"
PLAIN_ANSWER = "Plain answer"
DRAFTED_ANSWER = "Drafted answer"
WAITING = "Waiting"
NEXT = "Next"
RECORDED = "Recorded"
FINISHED = "Finished"


READY_TITLE = "Which one is done first?"
READY_TEXT = (
    "The model answers the question twice, first without drafts, then with them. Both start without caches"
    " and with empty tables, and neither is kept."
)
RECORDING_PLAIN = "Recording the plain answer"
RECORDING_DRAFTED = "Recording the drafted answer"
RECORDING_TEXT = "The texts appear when both are recorded, so that showing them slows neither."
STOPPING = "Stopping"
NOT_DONE = "The race was not finished."
WORKER_GONE = "The engine stopped before the race was recorded. Restart it, then run again."
NO_SPEED = "Too short to compare"


def subtitle_of(drafter: str, exactness: str) -> str:
    return f"{drafter}, {exactness}"


def headline(ratio: float) -> str:
    if not ratio:
        return NO_SPEED
    return f"{ratio:.1f}× as fast" if ratio >= 1.05 else f"{ratio:.2f}× the plain speed"


def sooner(sooner_s: float, read_sooner_s: float) -> str:
    """If the first token was later but the last one sooner, or the reverse, both are reported."""
    if abs(sooner_s) < 0.005:
        return "Done at the same time."
    done = f"Done {_than(sooner_s)}"
    written_sooner_s = sooner_s - read_sooner_s
    if written_sooner_s * sooner_s < 0 and abs(written_sooner_s) >= 0.005:
        return f"{done}: prompt read {_than(read_sooner_s)}, answer written {_than(written_sooner_s)}."
    return f"{done}."


def _than(sooner_s: float) -> str:
    return f"{seconds(abs(sooner_s))} s {'sooner' if sooner_s > 0 else 'later'}"


def identical(tokens: int) -> str:
    few = ("Both answers are empty.", "The one token is identical.")
    return few[tokens] if tokens < len(few) else f"All {tokens:,} tokens are identical."


def different(number: int) -> str:
    """`number` counts from 0; people count from 1."""
    return (
        f"The answers differ from token {number + 1:,} on. With “Exact” under Exactness, close decisions"
        " are the same as in the plain answer."
    )


def recorded(tokens: int) -> str:
    return f"{tokens:,} token{'s' * (tokens != 1)} so far"


def earlier(messages: int) -> str:
    said = "1 message" if messages == 1 else f"{messages} messages"
    return f"After {said} of the chat"


def at_seconds(at_s: float) -> str:
    return f"{seconds(at_s)} s"


# Most of the answer is in the question, so drafts are accepted.
EXAMPLE = """Rename `total` to `sum_of_prices` in this function and give all of it back:

def bill(prices):
    total = 0
    for price in prices:
        total = total + price
    return total
"""
