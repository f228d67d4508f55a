"""Finds tool servers in the configuration of other programs: Claude Desktop, LM Studio, Cursor and VS Code.

Nothing is started, connected to or changed. The files are JSON, mostly with comments: `mcpServers`, or
`servers` with `inputs` in VS Code. Whatever cannot be used is named in `problems`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import reason_of
from core.events.wire import well_formed
from core.system.files import open_regular
from core.tools.masks import looks_secret, masked
from core.tools.messages import ServerEntry, ToolsError, check_entry

_MOST_BYTES = 4 * 1024 * 1024
_MOST_SERVERS = 200
# Fields of an entry that are used, or that do not matter to Draftlight.
_USED = {"command", "args", "env", "url", "serverUrl", "headers", "type", "transport"}
_IGNORED = {
    "disabled",
    "enabled",
    "description",
    "name",
    "autoApprove",
    "alwaysAllow",
    "gallery",
    "version",
    "timeout",
}
_VARIABLE = re.compile(r"\$\{(?:(?P<kind>env|input):)?(?P<name>[^{}]*)\}")
_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"({_STRING})|,(?=\s*[\]}}])")


class Found(Struct, frozen=True):
    """The servers in a program's file. `entries` have the values of their secrets; `secrets.keep` stores
    these.

    `problems`: what could not be used, in sentences.
    """

    program: str
    path: str
    entries: tuple[ServerEntry, ...] = ()
    problems: tuple[str, ...] = ()


def found(home: Path | None = None, environment: Mapping[str, str] = os.environ) -> list[Found]:
    """The files that exist below `home`, the person's home by default. Blocks for a moment; use a thread."""
    home = home or Path.home()
    listed = []
    for program, path in _places(home):
        try:
            with open_regular(path) as file:
                data = file.read(_MOST_BYTES + 1)
            listed.append(read(program, str(path), data, home, environment))
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            continue
        except OSError as error:
            listed.append(Found(program, str(path), problems=(f"It cannot be read: {reason_of(error)}.",)))
    return [each for each in listed if each.entries or each.problems]


def _places(home: Path) -> list[tuple[str, Path]]:
    support = home / ("Library/Application Support" if sys.platform == "darwin" else ".config")
    return [
        ("Claude Desktop", support / "Claude/claude_desktop_config.json"),
        ("LM Studio", home / ".lmstudio/mcp.json"),
        ("LM Studio", home / ".cache/lm-studio/mcp.json"),
        ("Cursor", home / ".cursor/mcp.json"),
        ("VS Code", support / "Code/User/mcp.json"),
        ("VS Code", support / "Code/User/settings.json"),
        ("VS Code Insiders", support / "Code - Insiders/User/mcp.json"),
    ]


def read(program: str, path: str, data: bytes, home: Path, environment: Mapping[str, str]) -> Found:
    """The servers in the content of a file."""
    if len(data) > _MOST_BYTES:
        return Found(program, path, problems=(f"It has more than {_MOST_BYTES:,} bytes.",))
    try:
        whole = _json(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Found(program, path, problems=(f"It is not valid JSON: {reason_of(error)}.",))
    whole = whole if isinstance(whole, dict) else {}
    inner = whole.get("mcp")
    held = inner if isinstance(inner, dict) and path.endswith("settings.json") else whole
    servers = held.get("mcpServers", held.get("servers"))
    if servers is None:
        return Found(program, path)
    if not isinstance(servers, dict):
        return Found(program, path, problems=("Its list of servers has an unknown form.",))
    reader = _Reader(home, environment, held.get("inputs"))
    entries = []
    for name, server in list(servers.items())[:_MOST_SERVERS]:
        entry = reader.entry(well_formed(name), server)
        if entry is not None:
            entries.append(entry)
    if len(servers) > _MOST_SERVERS:
        reader.problems.append(f"It has {len(servers):,} servers; the first {_MOST_SERVERS} are used.")
    return Found(program, path, tuple(entries), tuple(reader.problems))


class _Reader:
    """Reads the entries of one file, and appends problems with them to `problems`."""

    def __init__(self, home: Path, environment: Mapping[str, str], inputs: Any) -> None:
        self.problems: list[str] = []
        self._known = {"userHome": str(home), "/": os.sep, "pathSeparator": os.sep}
        self._environment = environment
        listed = inputs if isinstance(inputs, list) else []
        self._inputs = {each["id"]: each for each in listed if isinstance(each, dict) and "id" in each}
        self._missing: list[str] = []  # variables missing in the value being read
        self._name = ""

    def entry(self, name: str, server: Any) -> ServerEntry | None:
        self._name = name
        if not isinstance(server, dict):
            return self._leave_out("has an unknown form")
        kind = server.get("type", server.get("transport", ""))
        if kind == "sse":
            return self._leave_out(
                "uses the transport “sse”, which is not supported; use its http address if it has one"
            )
        if kind not in ("", "stdio", "http", "streamable-http", "streamableHttp", "streamable_http"):
            return self._leave_out(f"has the unknown type “{str(kind)[:40]}”")
        unused = sorted(server.keys() - _USED - _IGNORED)
        command, url = server.get("command", ""), server.get("url", server.get("serverUrl", ""))
        args = server.get("args", [])
        if not isinstance(command, str) or not isinstance(url, str) or not isinstance(args, list):
            return self._leave_out("has an unknown form")
        if not command and not url:
            return self._leave_out("has neither a command nor an address")
        values = server.get("env" if command else "headers") or {}
        if not isinstance(values, dict):
            return self._leave_out("has an unknown form")
        self._missing = []
        command, url = self._replaced(command), "" if command else self._replaced(url)
        args = [self._replaced(_text(each)) for each in args]
        if self._missing:
            return self._leave_out(f"needs {', '.join(self._missing)} in its command or address")
        kept, secret = self._named(values, name)
        entry = ServerEntry(
            name, command, tuple(args), *((kept, "", {}) if command else ({}, url, kept)), tuple(secret)
        )
        try:
            check_entry(entry)
        except ToolsError as error:
            (why,) = masked([str(error)])  # it may quote the address
            self.problems.append(f"“{name}” was left out: {why}")
            return None
        if unused:
            self.problems.append(f"“{name}”: {', '.join(f'“{each}”' for each in unused)} is not used.")
        return entry

    def _named(self, values: dict[Any, Any], name: str) -> tuple[dict[str, str], list[str]]:
        """Variables or headers, and the names of the secrets among them. A missing secret has no value."""
        kept: dict[str, str] = {}
        secret = []
        for key, given in values.items():
            if given is None:  # VS Code removes the variable
                continue
            key, text, self._missing = well_formed(str(key)), _text(given), []
            value = self._replaced(text)
            if looks_secret(key, value) or self._asks_secretly(text):
                secret.append(key)
            if self._missing:
                self.problems.append(f"“{name}” needs {', '.join(self._missing)}, for “{key}”.")
                if key in secret:
                    continue
            kept[key] = value
        return kept, secret

    def _replaced(self, text: str) -> str:
        """`text` with its variables replaced; unknown ones are noted as missing and become empty."""

        def value(match: re.Match[str]) -> str:
            kind, name = match["kind"], match["name"]
            if kind is None and name in self._known:
                return self._known[name]
            if kind == "env" and name in self._environment:
                return self._environment[name]
            if kind == "input":
                asked = self._inputs.get(name, {})
                self._missing.append(f"“{asked.get('description') or name}”")
            else:
                self._missing.append(f"“{name}” of the environment" if kind == "env" else match[0])
            return ""

        return _VARIABLE.sub(value, well_formed(text))

    def _asks_secretly(self, text: str) -> bool:
        asked = [
            self._inputs.get(each["name"], {}) for each in _VARIABLE.finditer(text) if each["kind"] == "input"
        ]
        return any(each.get("password") is True for each in asked)

    def _leave_out(self, why: str) -> ServerEntry | None:
        self.problems.append(f"“{self._name}” was left out: it {why}.")
        return None


def _json(data: bytes) -> Any:
    """JSON that may have comments, commas before closing brackets, and a byte order mark."""
    text = data.decode("utf-8-sig")
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda match: match[1] or " ", text)
    return msgspec.json.decode(text) if text.strip() else {}


def _text(value: Any) -> str:
    """A value as a program gets it: numbers and booleans as JSON writes them."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
