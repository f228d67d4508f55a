"""`POST /v1/chat/completions`."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from core.serve.answering import Serving, answer_with, loaded_model, new_id
from core.serve.answers.answer import Answers
from core.serve.http.bodies import read_fields
from core.serve.openai.chat_request import chat_request
from core.serve.openai.chat_writer import ChatWriter
from core.serve.openai.models import answering_model


class ChatEndpoint:
    """Answers `messages`."""

    def __init__(self, answers: Answers, serving: Serving) -> None:
        self._answers = answers
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        asked = chat_request(await read_fields(scope, receive, self._serving.doors.most_bytes))
        model = await loaded_model(self._answers, receive)
        name = answering_model(self._answers, asked, self._serving.strict)
        request = new_id("chatcmpl")
        generate = self._serving.accepted(asked, asked.generate(request, self._serving.base(), model))
        writer = ChatWriter(asked, request, name, asked.tool_use.rules(model))
        await answer_with(self._answers, generate, writer, asked.stream, scope, receive, send)
