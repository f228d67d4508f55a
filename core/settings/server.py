"""Settings of the local server."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from core.settings.fields import number, switch, text


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """Serves OpenAI's and Anthropic's APIs to editors and scripts."""

    on: Annotated[
        bool,
        switch(
            "Serve",
            "Editors and scripts can use the loaded model through OpenAI's API while Draftlight is open."
            " Their requests and the chats share one queue.",
            off="Off: the server does not listen.",
        ),
    ] = False
    port: Annotated[int, number(1024, 65535, "Port", "Port of the server on this machine.")] = 8317
    address: Annotated[
        str,
        text(
            64,
            "Address",
            "127.0.0.1 accepts connections from this machine only. Any other address, or 0.0.0.0, accepts"
            " other machines, so an API key is required.",
            least=2,
            lines=1,
        ),
    ] = "127.0.0.1"
    hosts: Annotated[
        str,
        text(
            2000,
            "Allowed names",
            "Host names that clients may use besides the address, such as mac.local; one per line.",
            lines=2,
        ),
    ] = ""
    ask_key: Annotated[
        bool,
        switch(
            "Ask for a key",
            "Clients must send the API key, as “Authorization: Bearer …” or “x-api-key: …”.",
        ),
    ] = False
    origins: Annotated[
        str,
        text(
            2000,
            "Allowed origins",
            "Web pages that may send requests, such as http://localhost:3000; one per line. Empty: none.",
            lines=3,
        ),
    ] = ""
    waiting: Annotated[
        int,
        number(
            0,
            100,
            "Waiting requests",
            "Maximum number of queued requests. Others are refused with the time to wait.",
            unit="requests",
        ),
    ] = 64
    max_body_mb: Annotated[
        int, number(1, 48, "Largest request", "Larger requests are refused before they are read.", unit="MB")
    ] = 16
    longest_answer: Annotated[
        int,
        number(
            64,
            131072,
            "Longest answer",
            "Maximum length of an answer whose request has no limit of its own.",
            unit="tokens",
        ),
    ] = 32768
    learn: Annotated[
        bool,
        switch(
            "Learn from requests",
            "Tables remember short runs of words from clients' requests, as they do from chats.",
        ),
    ] = False
    keep_requests: Annotated[
        bool,
        switch(
            "Keep requests",
            "Requests and their answers are kept in a file on this disk for 30 days, at most the newest"
            " 1,000 requests and 500 MB. They can be read and deleted in the server's window. Off keeps no"
            " new ones; existing ones remain until they expire or are deleted.",
            on="On: requests and answers stay on this disk for 30 days.",
            off="Off: requests are deleted when Draftlight quits.",
        ),
    ] = False
    strict: Annotated[
        bool,
        switch(
            "Strict",
            "Refuses requests with unsupported fields, tools, images or model names. Otherwise these are"
            " ignored and listed in the answer's draftlight.changes.",
        ),
    ] = False
    metrics: Annotated[
        bool,
        switch(
            "Metrics",
            "Provides counts and speeds, without any text of requests, at /metrics in Prometheus format.",
        ),
    ] = False
