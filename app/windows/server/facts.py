"""Facts of one request: its fields, and the effective settings. Pure; no Qt."""

from __future__ import annotations

from msgspec import Struct

from app.gauges.figures import seconds
from app.session.chats.overrides import differences
from app.windows.server import strings
from app.windows.server.rows import endpoint
from core.events import Effective, Generate
from core.serve.requests import ServedRequest
from core.settings import Settings
from core.settings.declaration import find


class Facts(Struct, frozen=True):
    """Sections of (name, value), each with a title. Changes are shown below the answer."""

    sections: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()


def facts_of(request: ServedRequest, asked: Generate | None, effective: Effective | None) -> Facts:
    """`effective` is None until it has ended as it should."""
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
    """Those that are not Draftlight's own."""
    told = []
    for each in differences(settings, Settings()):
        setting = find(each.key)
        told.append((setting.title, setting.labels.get(each.value) or _shown(each.value)))
    return tuple(told)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return strings.YES if value else strings.NO
    return f"{value:g}" if isinstance(value, float) else str(value)
