"""`POST /v1/requests/{id}/cancel`: ends a request by its id, whoever asked it."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from core.serve.answers.answer import Answers
from core.serve.errors import ApiError
from core.serve.http.responses import send_json


class CancelEndpoint:
    """Who knows an id may cancel it. The one who asked gets what there is so far."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """End it within a step or a chunk."""
        request = scope["path_params"]["id"]
        if not self._answers.cancel(request):
            raise ApiError(404, "No request of this id waits or is answered.", param="id", code="not_found")
        await send_json(send, {"id": request, "object": "request.cancelled", "cancelled": True})
