"""Tool servers, tools and results as records, and the messages between the window and the tools' process.

The messages are JSON lines like the worker's. A server's own words (names, descriptions, schemas, results,
log lines) are untrusted text: bounded in size and well-formed Unicode, but otherwise unchecked.
"""

from __future__ import annotations

import hashlib
import ipaddress
import shlex
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from core.errors import ProtocolError, RequestError
from core.events.wire import Wire, well_formed_json, well_formed_record
from core.system.prepared import prepared

# Limits of a result. Its images are sent as base64, which adds a third.
RESULT_TEXT_BYTES = 1024 * 1024
RESULT_IMAGE_BYTES = 8 * 1024 * 1024
# Limit of a line in either direction: a result, or the tools of a server.
LINE_LIMIT_BYTES = 32 * 1024 * 1024
CALL_TIMEOUT_S = 60.0

Phase = Literal["off", "starting", "ready", "failed", "ended"]


class ToolsError(RequestError, code="tool-failed"):
    """A tool server cannot be used, or a call has no result.

    `ran`: whether the call was executed. False: it was not sent. None: it was sent and may have been
    executed, in whole or in part. True: it was executed, but its result cannot be shown.
    """

    def __init__(self, message: str, hint: str = "", *, ran: bool | None = False) -> None:
        super().__init__(message, hint)
        self.ran = ran


# ---- servers


class ServerEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One tool server: a program with its arguments and environment, or an address with its headers.

    `secrets` names the variables of `env`, or the headers, whose values are in the keychain
    (`core.tools.secrets`). A stored entry has no values for them, and masks (`core.tools.masks`) in place of
    secrets in its arguments or address.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()

    @property
    def whole(self) -> str:
        """The complete command line, quoted as in a shell, or the address."""
        return shlex.join((self.command, *self.args)) if self.command else self.url


def check_entry(entry: ServerEntry) -> None:
    """Raises `ToolsError` if `entry` cannot be a server; nothing is started or connected to."""
    if not entry.name.strip():
        raise ToolsError("The server has no name.", "Give it one.")
    if bool(entry.command) == bool(entry.url):
        raise ToolsError(
            f"“{entry.name}” needs either a program or an address.", "Enter a command or an http address."
        )
    values = (entry.command, *entry.args, *entry.env, *entry.env.values(), entry.url, *entry.headers)
    if any("\0" in value for value in (*values, *entry.headers.values())):
        raise ToolsError(f"“{entry.name}” has a null character in its command or address.", "Remove it.")
    if bad := next((name for name in entry.env if not name or "=" in name), None):
        raise ToolsError(f"“{bad}” cannot be the name of an environment variable.", "Use a name without “=”.")
    if bad := next((name for name, value in entry.headers.items() if {"\r", "\n"} & {*name, *value}), None):
        raise ToolsError(f"The header “{bad}” has a line break.", "Remove it.")
    if entry.url:
        _check_address(entry)


def _check_address(entry: ServerEntry) -> None:
    try:
        address = urlsplit(entry.url)
        host, _ = address.hostname, address.port
    except ValueError:
        host = None
    if not host or address.scheme not in ("http", "https"):
        raise ToolsError(
            f"“{entry.url}” is not an http or https address.", "Enter one like https://host/mcp."
        )
    if address.username or address.password:
        raise ToolsError(
            f"The address of “{entry.name}” contains a password.",
            "Put it into a header, such as Authorization.",
        )
    if address.scheme == "http" and entry.headers and not _is_loopback(host):
        raise ToolsError(
            f"“{entry.name}” would send its headers unencrypted.", "Use https, or remove the headers."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class ServerTool(Struct, frozen=True):
    """A tool as its server declares it. `schema`: the JSON schema of its arguments as text.

    `read_only` is what the server claims (`readOnlyHint`); it is shown, and nothing depends on it.
    """

    name: str
    description: str = ""
    schema: str = "{}"
    read_only: bool = False


def fingerprint(entry: ServerEntry, tool: ServerTool) -> str:
    """SHA-256, in hexadecimal digits, of everything that a permission depends on.

    The command line or address, variables and headers, and the tool's name, description and schema. Of
    secrets, only the names are included.
    """
    known = [
        sorted((name, "" if name in entry.secrets else value) for name, value in values.items())
        for values in (entry.env, entry.headers)
    ]
    bound = (entry.command, entry.args, entry.url, sorted(entry.secrets), known)
    declared = (tool.name, tool.description, tool.schema)
    return hashlib.sha256(msgspec.json.encode(well_formed_record((bound, declared)))).hexdigest()


# ---- results


class ResultImage(Struct, frozen=True):
    """An image in a result. `mime` is what the server claims; `data` are the bytes of the file."""

    mime: str
    data: bytes


class CallResult(Struct, frozen=True):
    """The result of a call.

    `text`: at most `RESULT_TEXT_BYTES` of UTF-8. `cut`: parts were left out, as the end of `text` says.
    `is_error`: the server says that the call failed; `text` is its reason. `seconds`: duration of the call.
    `other`: descriptions of parts that are neither text nor images, such as sound or links; never fetched.
    """

    text: str = ""
    images: tuple[ResultImage, ...] = ()
    is_error: bool = False
    cut: bool = False
    seconds: float = 0.0
    other: tuple[str, ...] = ()


# ---- messages to the tools' process


class StartServer(Wire, frozen=True):
    """Starts a server. `run` is a number that its events repeat. `entry` has the values of its secrets."""

    run: int
    entry: ServerEntry


class StopServer(Wire, frozen=True):
    """Ends the server of `run` and its calls; the run's last event has the phase “off”."""

    run: int


class CallTool(Wire, frozen=True):
    """Calls a tool once. `call` is a number that the result repeats. `arguments`: a JSON object as text."""

    call: int
    run: int
    tool: str
    arguments: str


class CancelCall(Wire, frozen=True):
    """Cancels a call. There is no reply."""

    call: int


# ---- messages from it


class ServerState(Wire, frozen=True):
    """State of a server; each replaces the last one.

    - `phase`: “ended” means that the process died or the connection was lost; a start follows, once. “failed”
      means that it cannot be used until the user starts it again.
    - `problem`, `hint`: the error and what to do; empty if there is none.
    - `restarts`: number of restarts after it died.
    - `pid`: the process, which is also its group; 0 for an address.
    """

    server: str
    phase: Phase
    tools: tuple[ServerTool, ...] = ()
    problem: str = ""
    hint: str = ""
    restarts: int = 0
    pid: int = 0
    run: int = 0


class ServerLog(Wire, frozen=True):
    """A line that a server wrote to its log (stderr). Long lines are cut; too many lines are dropped."""

    server: str
    line: str
    run: int = 0


class CallEnded(Wire, frozen=True):
    """The end of a call: `result`, or `problem` if it has none; `ran` as in `ToolsError`."""

    call: int
    result: CallResult | None = None
    problem: str = ""
    hint: str = ""
    ran: bool | None = None


HostCommand = StartServer | StopServer | CallTool | CancelCall
HostEvent = ServerState | ServerLog | CallEnded

_encoder = msgspec.json.Encoder()
_command_decoder: msgspec.json.Decoder[HostCommand] = msgspec.json.Decoder(prepared(HostCommand))
_event_decoder: msgspec.json.Decoder[HostEvent] = msgspec.json.Decoder(prepared(HostEvent))


def encode_line(message: HostCommand | HostEvent) -> bytes:
    """One line, newline included."""
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(well_formed_record(message)) + b"\n"


def decode_host_command(line: bytes) -> HostCommand:
    """Raises `ProtocolError`."""
    try:
        return _command_decoder.decode(well_formed_json(line))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(f"This line is not a command of the tools' process: {error}.") from None


def decode_host_event(line: bytes) -> HostEvent:
    """Raises `ProtocolError`."""
    try:
        return _event_decoder.decode(well_formed_json(line))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(f"This line is not an event of the tools' process: {error}.") from None
