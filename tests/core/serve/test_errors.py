"""What goes wrong, as clients are told it: a status, a word for programs, and nothing of this machine."""

from __future__ import annotations

import pytest

from core.errors import ModelError, OutOfMemoryError, PromptTooLongError, RequestError
from core.events import Failed, failure
from core.serve import status
from core.serve.http import FieldNames, api_error, without_paths
from tests.core.serve.served import Served


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no model folder at “/Users/anna/models/secret-name”.", "no model folder at “secret-name”."),
        ("/home/anna/.cache/x/y.json: Permission denied.", "y.json: Permission denied."),
        ("~/Library/Application/Draftlight/key is open", "key is open"),
        ("C:/Users/anna/x is open", "x is open"),
        (
            "see http://127.0.0.1:8317/v1/models and and/or 3/4",
            "see http://127.0.0.1:8317/v1/models and and/or 3/4",
        ),
        ("Cannot read “/Volumes/My old disk 2/LLM/My Model”.", "Cannot read “My Model”."),
        ("/Users/jan/Library/Application Support/Draftlight/x.json: damaged.", "x.json: damaged."),
        ("no /a/b is in a/b. See a/b", "no b is in a/b. See a/b"),
        ("owner/name is not on this computer.", "owner/name is not on this computer."),
        ("POST /v1/chat/completions", "POST /v1/chat/completions"),
    ],
)
def test_of_a_path_its_last_part_is_told(text: str, told: str) -> None:
    assert without_paths(text) == told


@pytest.mark.parametrize(
    ("failed", "status", "code"),
    [
        (failure(PromptTooLongError(900, 500), command="generate"), 400, "context_length_exceeded"),
        (failure(ModelError("No."), command="generate"), 400, "bad_model"),
        (
            failure(RequestError("No.", code="request-too-large"), command="generate"),
            413,
            "request_too_large",
        ),
        (failure(OutOfMemoryError("No room."), command="generate"), 500, "out_of_memory"),
        (failure(ValueError("/home/anna/x"), command="generate"), 500, "internal"),
        (
            failure(FileNotFoundError(2, "No such file", "/home/anna/x/y"), command="generate"),
            400,
            "bad_path",
        ),
    ],
)
def test_what_the_worker_says_has_a_status(failed: Failed, status: int, code: str) -> None:
    error = api_error(failed, FieldNames())
    assert (error.status, error.code) == (status, code)
    assert b"anna" not in error.encoded()


def test_a_bug_is_told_as_one_and_nothing_of_it(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("of what nobody should hear")

    monkeypatch.setattr(status, "send_json", fails)
    reply = served.ask("GET", "/health")
    assert (reply.status, reply.error["code"], reply.error["type"]) == (500, "internal", "server_error")
    assert b"nobody should hear" not in reply.body
    served.until(lambda: "nobody should hear" in caplog.text)
    assert served.chat().status == 200
