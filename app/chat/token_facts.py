"""TokenFacts: what the tooltip says about one token, as text. No Qt."""

from __future__ import annotations

from msgspec import Struct

from app.chat import strings
from app.richtext.markdown.token_table import TokenTable
from core.events import Origin, Token
from core.settings import declared

_VISIBLE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "↵", "\u00a0": "␣"})
_LONGEST = 24


class TokenFacts(Struct, frozen=True):
    """`rows` are label and value, in order, without the class, which is shown tinted."""

    text: str
    id: str
    origin: Origin
    class_name: str
    rows: tuple[tuple[str, str], ...]
    address: str = ""  # where a click goes


def facts_of(table: TokenTable, index: int, drafter: str, address: str = "") -> TokenFacts:
    """The facts of token number `index`. `drafter` may be empty while it is not known."""
    token, origin = table[index], table.origin_of(index)
    drafted = token.origin == "accepted" and token.draft_length > 0
    return TokenFacts(
        _shown(table, index),
        strings.TOKEN_ID.format(id=token.id),
        origin,
        strings.CLASS_NAMES[origin],
        (
            (strings.TIP_STEP, strings.STEP_OF.format(step=token.step, steps=max(table.steps, token.step))),
            (strings.TIP_DRAFTER, drafter_label(drafter) if drafter else strings.NONE),
            (
                strings.TIP_POSITION,
                strings.POSITION_OF.format(index=token.draft_index, length=token.draft_length)
                if drafted
                else strings.NONE,
            ),
            (strings.TIP_ARRIVED, _arrived(token, table.in_step(token.step) - 1)),
        ),
        address,
    )


def drafter_label(name: str) -> str:
    """What people call the drafter `name`; a name without a label is its own."""
    for setting in declared():
        if setting.key == "drafting.drafter":
            return setting.labels.get(name, name)
    return name


def seconds(value_s: float) -> str:
    """A time with as many decimals as it deserves: 0.41 s, 24.3 s, 112 s."""
    decimals = 2 if value_s < 9.995 else 1 if value_s < 99.95 else 0
    return strings.SECONDS.format(value=f"{value_s:,.{decimals}f}")


def _arrived(token: Token, others: int) -> str:
    time = seconds(token.time_s)
    if others <= 0:
        return strings.ARRIVED_ALONE.format(seconds=time)
    if others == 1:
        return strings.ARRIVED_WITH_ONE.format(seconds=time)
    return strings.ARRIVED_WITH.format(seconds=time, others=others)


def _shown(table: TokenTable, index: int) -> str:
    """The token's text with its spaces visible; a leading space only where it is all there is."""
    text = table[index].text
    if not text:
        whole = table.shown_by(index)
        if whole is None:
            return strings.END_OF_ANSWER
        return strings.PART_OF.format(text=_shown(table, whole))
    core = text.strip() or text.translate(_VISIBLE)
    core = core.translate({10: "↵", 9: "⇥", 13: "↵"})
    return core if len(core) <= _LONGEST else core[: _LONGEST - 1] + "…"
