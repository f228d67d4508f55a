"""`POST /v1/responses`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.types import Receive, Scope, Send

from core.events import Change
from core.serve.answering import Serving, answer_with, loaded_model, new_id
from core.serve.answers.answer import Answers
from core.serve.http.bodies import read_fields
from core.serve.openai.models import answering_model
from core.serve.responses.memory import ResponseMemory
from core.serve.responses.response_request import response_request
from core.serve.responses.response_writer import ResponseWriter


class ResponsesEndpoint:
    """Answers `input`."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        self._answers = answers
        self._serving = serving
        self._memory = ResponseMemory()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        changes: list[Change] = []
        given = await read_fields(scope, receive, self._serving.doors.most_bytes)
        fields = self._memory.resolved(given, changes)
        asked = response_request(fields)
        asked.changes.extend(changes)
        model = await loaded_model(self._answers, receive)
        name = answering_model(self._answers, asked, self._serving.strict)
        request = new_id("resp", "_")
        generate = self._serving.accepted(asked, asked.generate(request, self._serving.base(), model))

        def keep(output: Sequence[dict[str, Any]]) -> None:
            if asked.store:
                self._memory.keep(generate.request, fields["input"], output)

        writer = ResponseWriter(asked, generate, name, asked.tool_use.rules(model), keep)
        await answer_with(self._answers, generate, writer, asked.stream, scope, receive, send, writer.alive)
