"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from core.serve.answering import Serving, answer_with, loaded_model, new_id
from core.serve.answers.answer import Answers
from core.serve.anthropic.message_request import count_request, message_request
from core.serve.anthropic.message_writer import MessageWriter
from core.serve.counting import counted
from core.serve.http.bodies import read_fields
from core.serve.http.responses import send_json
from core.serve.openai.models import answering_model


class MessagesEndpoint:
    """Answers `messages`."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        self._answers = answers
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        asked = message_request(await read_fields(scope, receive, self._serving.doors.most_bytes))
        model = await loaded_model(self._answers, receive)
        name = answering_model(self._answers, asked, self._serving.strict)
        request = new_id("msg", "_")
        generate = self._serving.accepted(asked, asked.generate(request, self._serving.base(), model))
        writer = MessageWriter(asked, request, name, asked.tool_use.rules(model))
        await answer_with(self._answers, generate, writer, asked.stream, scope, receive, send, writer.alive)


class CountEndpoint:
    """Says how many tokens `messages` would be, all told; nothing is answered."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        self._answers = answers
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        asked = count_request(await read_fields(scope, receive, self._serving.doors.most_bytes))
        model = await loaded_model(self._answers, receive)
        answering_model(self._answers, asked, self._serving.strict)
        generate = self._serving.accepted(asked, asked.generate(new_id("count"), self._serving.base(), model))
        tokens = await counted(self._answers.gate, generate, asked.names, receive)
        await send_json(send, {"input_tokens": tokens})
