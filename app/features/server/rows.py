"""The rows of the request list and the facts of a request, as texts and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Literal

from PySide6.QtGui import QPixmap

from app.controls.record_table import Column, neighbour, swatch
from app.features.server import strings
from app.gauges.figures import DASH, count, percent, seconds, speed, spoken_text
from core.serve.served_requests import ServedRequest

_LIVE = ("reading", "writing")
# Working now; wrong; waiting or finished.
Level = Literal["live", "bad", "dim"]
_INKS = {"live": "text", "bad": "danger", "dim": "text2"}


@dataclass(frozen=True)
class RequestRow:
    """`id` identifies the request."""

    id: str
    title: str
    subtitle: str
    state: str
    level: Level
    tokens: str
    speed: str
    accepted: str
    cached: str
    first_token: str
    came: str
    tip: str
    over: bool = True

    @property
    def spoken(self) -> str:
        return spoken_text(
            *(self.title, self.subtitle, self.state, (strings.TOKENS, self.tokens)),
            *((strings.SPEED, self.speed), (strings.ACCEPTED, self.accepted), (strings.CACHED, self.cached)),
            *((strings.FIRST_TOKEN, self.first_token), (strings.CAME, self.came)),
        )


def rows_of(requests: Sequence[ServedRequest], today: date) -> tuple[RequestRow, ...]:
    return tuple(_row(each, today) for each in reversed(requests))


# Few of a thousand stored requests change during an answer.
@lru_cache(4096)
def _row(request: ServedRequest, today: date) -> RequestRow:
    waits = request.state == "waiting"
    return RequestRow(
        id=request.id,
        title=strings.short_name(request.client) or request.client,
        subtitle=" · ".join(filter(None, (request.model, endpoint(request.path)))),
        state=strings.waiting(request.position) if waits else strings.STATES[request.state],
        level="live" if request.state in _LIVE else "bad" if request.state == "failed" else "dim",
        tokens=count(request.tokens) if request.tokens else DASH,
        speed=speed(request.tokens_per_s) if request.tokens_per_s else DASH,
        accepted=percent(request.acceptance) if request.tested else DASH,
        cached=strings.read_of(request.cached_tokens, request.prompt_tokens)
        if request.prompt_tokens and not request.embeds
        else DASH,
        first_token=strings.seconds(seconds(request.ttft_s)) if request.ttft_s else DASH,
        came=_came(datetime.fromtimestamp(request.came_s), today),
        tip=request.problem or request.client,
        over=request.is_over,
    )


def _came(when: datetime, today: date) -> str:
    """Returns 14:02:31 for today, 3 Nov 14:02 before."""
    return f"{when:%H:%M:%S}" if when.date() == today else f"{when.day} {when:%b %H:%M}"


def endpoint(path: str) -> str:
    """Returns `chat/completions` for `/v1/chat/completions`."""
    return path.removeprefix("/v1/").lstrip("/")


def _dot(row: RequestRow, place: int, ratio: float) -> QPixmap | None:
    return swatch(8, 4, ratio, "series_blue") if row.level == "live" else None


COLUMNS = (
    Column("title", strings.CLIENT, 212, grows=True, below="subtitle"),
    Column("state", strings.STATE, 132, ink=lambda row: _INKS[row.level], icon=_dot),
    Column("tokens", strings.TOKENS, 72, right=True),
    Column("speed", strings.SPEED, 78, right=True),
    Column("accepted", strings.ACCEPTED, 84, right=True),
    Column("cached", strings.CACHED, 128, right=True),
    Column("first_token", strings.FIRST_TOKEN, 84, right=True),
    Column("came", strings.CAME, 96, right=True, ink="text2"),
)


def row_instead(rows: tuple[RequestRow, ...], place: int) -> RequestRow:
    """Returns the neighbour of a deleted row; of new rows the one in progress, or the newest."""
    live = (row for row in rows if row.level == "live")
    return neighbour(rows, place) if place >= 0 else next(live, rows[0])
