"""Whether an answer can be continued, and figures in words."""

from __future__ import annotations

from itertools import product

from msgspec.structs import replace

from app.session import strings
from app.session.chats.answers import can_go_on
from tests.app.session.words import finished


def test_an_answer_goes_on_where_its_model_can_and_nothing_has_ended_it() -> None:
    """Each condition alone prevents it."""
    for reason, model, tokens, used in product(
        ("length", "cancelled", "stop"), ("Toy 1M", "Toy 2M"), (0, 1, 9), (10, 99, 100, 101)
    ):
        end = finished(tokens=tokens, reason=reason, context=used)  # type: ignore[arg-type]
        for limit in (0, 100):
            given = replace(end, stats=replace(end.stats, context_tokens=limit))
            fits = limit == 0 or used < limit
            wanted = reason != "stop" and model == "Toy 1M" and tokens > 0 and fits
            assert can_go_on(given, model) == wanted, (reason, model, tokens, used, limit)


def test_one_token_is_one() -> None:
    assert [strings.tokens(count) for count in (0, 1, 2, 1234)] == [
        *("0 tokens", "1 token", "2 tokens", "1,234 tokens")
    ]
