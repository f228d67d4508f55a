"""The rows of the request list and the facts of a request, as texts and figures. Pure; no Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

from msgspec import Struct

from app.controls.record_table import Column, Level, paint_names, paint_state
from app.features.server import strings
from app.features.server.server import short_name
from app.gauges.figures import DASH, count, percent, seconds, speed, spoken_text
from app.session.chats.presets import differences
from core.events import Effective, Generate
from core.serve.requests import ServedRequest
from core.settings import Settings
from core.settings.declaration import find

_LIVE = ("reading", "writing")


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
        """The row as assistive technology reads it."""
        return spoken_text(
            *(self.title, self.subtitle, self.state, (strings.TOKENS, self.tokens)),
            *((strings.SPEED, self.speed), (strings.ACCEPTED, self.accepted), (strings.CACHED, self.cached)),
            *((strings.FIRST_TOKEN, self.first_token), (strings.CAME, self.came)),
        )


def rows_of(requests: Sequence[ServedRequest], today: date) -> tuple[RequestRow, ...]:
    """Returns the rows, newest first."""
    return tuple(_row(each, today) for each in reversed(requests))


# Few of a thousand stored requests change during an answer.
@lru_cache(4096)
def _row(request: ServedRequest, today: date) -> RequestRow:
    waits = request.state == "waiting"
    return RequestRow(
        id=request.id,
        title=short_name(request.client) or request.client,
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


COLUMNS = (
    Column("client", strings.CLIENT, 212, after_px=12, grows=True, paint=paint_names),
    Column("state", strings.STATE, 132, paint=paint_state),
    Column("tokens", strings.TOKENS, 72, right=True),
    Column("speed", strings.SPEED, 78, right=True),
    Column("accepted", strings.ACCEPTED, 84, right=True),
    Column("cached", strings.CACHED, 128, right=True),
    Column("first_token", strings.FIRST_TOKEN, 84, right=True),
    Column("came", strings.CAME, 96, right=True, ink="text2"),
)


def row_instead(rows: tuple[RequestRow, ...], place: int) -> RequestRow:
    """Returns the neighbour of a deleted row; of new rows the one in progress, or the newest."""
    if place >= 0:
        return rows[min(place, len(rows) - 1)]
    return next((row for row in rows if row.level == "live"), rows[0])


class Facts(Struct, frozen=True):
    """Sections of (name, value), each with a title. Changes are shown below the answer."""

    sections: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


def facts_of(request: ServedRequest, asked: Generate | None, effective: Effective | None) -> Facts:
    """`effective` is None until the request has ended normally."""
    sections = [(strings.REQUEST, _request(request, asked))]
    if effective is not None:
        sections.append((strings.EFFECTIVE, _effective(effective)))
    elif asked is not None:
        sections.append((strings.ASKED_FOR, _settings(asked.settings)))
    return Facts(tuple(section for section in sections if section[1]))


def _request(request: ServedRequest, asked: Generate | None) -> tuple[tuple[str, str], ...]:
    told = [
        (strings.CLIENT, request.client),
        (strings.MODEL, request.model),
        (strings.ENDPOINT, endpoint(request.path)),
        (strings.STREAMS, strings.YES if request.streams else strings.NO),
        (strings.WAITED, strings.seconds(seconds(request.waited_s)) if request.waited_s >= 0.01 else ""),
        (strings.PROMPT, strings.tokens(request.prompt_tokens) if request.prompt_tokens else ""),
    ]
    if asked is not None:
        told += [
            (strings.MESSAGES, f"{len(asked.messages):,}"),
            (strings.TOOLS, ", ".join(tool.name for tool in asked.tools)),
            (
                strings.GRAMMAR,
                strings.FORMATS.get(asked.grammar.kind, asked.grammar.kind) if asked.grammar else "",
            ),
            (strings.PREDICTION, strings.characters(len(asked.prediction)) if asked.prediction else ""),
            (strings.STOPS, f"{len(asked.stops)}" if asked.stops else ""),
        ]
    told.append((strings.TOTAL, strings.seconds(seconds(request.total_s)) if request.total_s else ""))
    return tuple(pair for pair in told if pair[1])


def _effective(effective: Effective) -> tuple[tuple[str, str], ...]:
    told = (
        (strings.DRAFTER, effective.drafter),
        (strings.GATE, effective.gate),
        (strings.READING, effective.reading_reason or effective.reading),
        (strings.EXACTNESS, effective.exactness),
    )
    return (*(pair for pair in told if pair[1]), *_settings(effective.settings))


def _settings(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Returns the settings that differ from Draftlight's own."""
    told = []
    for each in differences(settings, Settings()):
        setting = find(each.key)
        told.append((setting.title, setting.labels.get(each.value) or _shown(each.value)))
    return tuple(told)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return strings.YES if value else strings.NO
    return f"{value:g}" if isinstance(value, float) else str(value)
