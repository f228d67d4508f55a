"""Settings of the local server: where it listens, who may ask, what it keeps."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """OpenAI's API for editors and scripts on this machine."""

    on: Annotated[
        bool,
        Meta(
            title="Serve",
            description="Editors and scripts may ask the loaded model through OpenAI's API while Draftlight"
            " is open. They and the chats wait for each other.",
            extra={"notes": {"False": "Off: nothing listens."}},
        ),
    ] = False
    port: Annotated[
        int,
        Meta(
            ge=1024,
            le=65535,
            title="Port",
            description="Where clients find the server on this machine.",
        ),
    ] = 8317
    address: Annotated[
        str,
        Meta(
            min_length=2,
            max_length=64,
            title="Address",
            description="127.0.0.1 is this machine alone. At any other address of it, or at 0.0.0.0, other"
            " machines reach the server, so it must ask for a key.",
            extra={"lines": 1},
        ),
    ] = "127.0.0.1"
    hosts: Annotated[
        str,
        Meta(
            max_length=2000,
            title="Allowed names",
            description="What clients may call this machine besides its address, like mac.local; one a line.",
            extra={"lines": 2},
        ),
    ] = ""
    ask_key: Annotated[
        bool,
        Meta(
            title="Ask for a key",
            description="Whoever asks must send the key, as “Authorization: Bearer …” or “x-api-key: …”.",
        ),
    ] = False
    origins: Annotated[
        str,
        Meta(
            max_length=2000,
            title="Allowed origins",
            description="Web pages that may ask, like http://localhost:3000; one a line. Empty: none may.",
            extra={"lines": 3},
        ),
    ] = ""
    waiting: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            title="Waiting requests",
            description="How many may wait while one is answered. More are told to come back later.",
            extra={"unit": "requests"},
        ),
    ] = 64
    max_body_mb: Annotated[
        int,
        Meta(
            ge=1,
            le=48,
            title="Largest request",
            description="A longer one is refused before it is read.",
            extra={"unit": "MB"},
        ),
    ] = 16
    learn: Annotated[
        bool,
        Meta(
            title="Learn from requests",
            description="Tables may remember short runs of words from what clients send, as they do from"
            " chats.",
        ),
    ] = False
    keep_requests: Annotated[
        bool,
        Meta(
            title="Keep requests",
            description="All that clients send and get back stays in a file on this disk for 30 days, at most"
            " the newest 1,000 requests and 500 MB. It can be read and deleted in the server's window."
            " Switched off, nothing new is kept; what is there stays until it is too old or deleted.",
            extra={
                "notes": {
                    "True": "On: all that clients send and get back stays on this disk for 30 days.",
                    "False": "Off: requests are forgotten when Draftlight quits.",
                }
            },
        ),
    ] = False
    strict: Annotated[
        bool,
        Meta(
            title="Strict",
            description="Requests with fields, tools, images or model names that are not supported are"
            " refused. Otherwise these are left out, and the answer's draftlight.changes names them.",
        ),
    ] = False
    metrics: Annotated[
        bool,
        Meta(
            title="Tell figures",
            description="Counts and speeds, without a word of any request, are told at /metrics in"
            " Prometheus's form.",
        ),
    ] = False
