"""Counting: how many tokens a prompt is, by the worker that would read it."""

from __future__ import annotations

import asyncio

from starlette.types import Receive

from core.events import Event, Failed, Generate, TokenCount
from core.serve.answers.answer import ClientGoneError
from core.serve.answers.gate import WorkerGate
from core.serve.errors import FieldNames, of_failure
from core.serve.fields import with_own_system_message
from core.serve.http.responses import watched


async def counted(gate: WorkerGate, generate: Generate, names: FieldNames, receive: Receive) -> int:
    """Tokens of the prompt that `generate` would have; it waits for an answer that is being written.

    `names` are those of the request's fields. The body was read. Raises `ApiError`, `ClientGoneError`.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Event | None] = loop.create_future()

    def hear(event: Event | None) -> None:
        if not told.done():
            told.set_result(event)

    gate.count_prompt(with_own_system_message(generate), hear)
    async with watched(receive, lambda: hear(None)):
        event = await told
    match event:
        case TokenCount(tokens=tokens):
            return tokens
        case Failed():
            raise of_failure(event, names)
        case _:
            raise ClientGoneError
