"""`POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from core.serve.answering import answer_with, loaded_model, new_id
from core.serve.answers.answer import Answers
from core.serve.anthropic.message_request import count_request, message_request
from core.serve.anthropic.message_writer import MessageWriter
from core.serve.counting import counted
from core.serve.http.bodies import decode_fields, read_body
from core.serve.http.responses import send_json
from core.serve.openai.models import check_model

if TYPE_CHECKING:
    from core.serve.server import Serving


class MessagesEndpoint:
    """Answers `messages`."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        self._answers = answers
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        body = await read_body(receive, self._serving.doors.most_bytes)
        asked = message_request(decode_fields(body))
        model = await loaded_model(self._answers, receive)
        name = check_model(self._answers, asked.model)
        request = new_id("msg", "_")
        generate = asked.generate(request, self._serving.base(), model)
        writer = MessageWriter(asked, request, name, asked.tool_use.rules(model))
        await answer_with(self._answers, generate, writer, asked.stream, scope, receive, send, writer.alive)


class CountEndpoint:
    """Says how many tokens `messages` would be, all told; nothing is answered."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        self._answers = answers
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        body = await read_body(receive, self._serving.doors.most_bytes)
        asked = count_request(decode_fields(body))
        model = await loaded_model(self._answers, receive)
        check_model(self._answers, asked.model)
        generate = asked.generate(new_id("count"), self._serving.base(), model)
        tokens = await counted(self._answers.gate, generate, asked.names, receive)
        await send_json(send, {"input_tokens": tokens})
