"""Servers in other programs' files: every form that they write, and what cannot be used is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tools.imports import Found, found, read
from core.tools.messages import ServerEntry, check_entry

SUPPORT = "Library/Application Support" if sys.platform == "darwin" else ".config"
CLAUDE = {
    "globalShortcut": "",
    "mcpServers": {
        "files": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/My Files"],
        },
        "github": {"command": "docker", "args": ["run", "-i"], "env": {"GITHUB_TOKEN": "ghp_x", "HOST": "a"}},
    },
}
VS_CODE = """\ufeff{
    // Servers of mine
    "inputs": [
        {"id": "key", "type": "promptString", "description": "Key of Maps", "password": true},
        {"id": "town", "type": "promptString", "description": "Your town"},
    ],
    "servers": {
        "maps": {
            "type": "stdio", "command": "node", "args": ["${userHome}/maps.js", "--url", "http://a//b"],
            "env": {"MAPS": "${input:key}", "TOWN": "${input:town}", "PORT": 80, "GONE": null,
                    "API_KEY": "${env:MAPS_KEY}"}, /* the last one */
        },
        "remote": {"type": "http", "url": "https://host/mcp",
                   "headers": {"Authorization": "Bearer ${env:T}"}},
        "old": {"type": "sse", "url": "https://host/sse"},
        "work": {"command": "node", "args": ["${workspaceFolder}/x.js"]},
        "here": {"command": "node", "cwd": "/tmp", "envFile": "a"},
        "odd": ["node"],
        "none": {"command": 7},
        "empty": {},
        "http": {"url": "http://host/", "headers": {"A": "b"}},
    },
}
"""


def write(home: Path, name: str, content: str) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


def test_files_of_all_programs_are_found(tmp_path: Path) -> None:
    assert found(tmp_path, {}) == []
    one = json.dumps({"mcpServers": {"one": {"command": "node"}}})
    write(tmp_path, f"{SUPPORT}/Claude/claude_desktop_config.json", json.dumps(CLAUDE))
    write(tmp_path, ".lmstudio/mcp.json", one)
    write(tmp_path, ".cache/lm-studio/mcp.json", one)
    write(tmp_path, ".cursor/mcp.json", one)
    write(tmp_path, f"{SUPPORT}/Code/User/mcp.json", VS_CODE)
    write(
        tmp_path, f"{SUPPORT}/Code/User/settings.json", '{"mcp": {"servers": {"one": {"command": "node"}}}}'
    )
    files = found(tmp_path, {})
    assert [each.program for each in files] == [
        "Claude Desktop", "LM Studio", "LM Studio", "Cursor", "VS Code", "VS Code",
    ]  # fmt: skip
    assert [len(each.entries) for each in files] == [2, 1, 1, 1, 3, 1]
    files_entry, github = files[0].entries
    assert files_entry == ServerEntry(
        "files", "npx", ("-y", "@modelcontextprotocol/server-filesystem", "/Users/me/My Files")
    )
    assert (github.env, github.secrets) == ({"GITHUB_TOKEN": "ghp_x", "HOST": "a"}, ("GITHUB_TOKEN",))


def test_variables_inputs_and_odd_forms_are_used_or_named(tmp_path: Path) -> None:
    file = read("VS Code", "mcp.json", VS_CODE.encode(), tmp_path, {"T": "abc"})
    entries = {entry.name: entry for entry in file.entries}
    maps = entries["maps"]
    assert maps.args == (f"{tmp_path}/maps.js", "--url", "http://a//b")
    assert maps.env == {"TOWN": "", "PORT": "80"}
    assert maps.secrets == ("MAPS", "API_KEY")
    assert entries["remote"].headers == {"Authorization": "Bearer abc"}
    assert entries["remote"].secrets == ("Authorization",)
    assert set(entries) == {"maps", "remote", "here"}
    told = "\n".join(file.problems)
    named = ["Key of Maps", "Your town", "MAPS_KEY", "“old”", "sse", "workspaceFolder", "“cwd”, “envFile”"]
    for part in (*named, "“odd”", "“none”", "“empty”", "unencrypted"):
        assert part in told, part
    for entry in file.entries:
        check_entry(entry)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", ""),
        (b"{}", ""),
        (b"[]", ""),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{", "not valid"),
        (b'{"mcpServers": []}', "unknown form"),
        (b'{"mcpServers": {"a": null}}', "unknown form"),
        (b"[" * 100_000, "not valid"),
        (b" " * (4 << 20) + b"{}", "more than"),
    ],
)
def test_files_that_are_no_configuration_are_named(content: bytes, told: str, tmp_path: Path) -> None:
    file = read("Cursor", "mcp.json", content, tmp_path, {})
    assert file.entries == ()
    assert told in "".join(file.problems)
    assert bool(file.problems) == bool(told)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / ".cursor/mcp.json").mkdir(parents=True)
    (only,) = found(tmp_path, {})
    assert "cannot be read" in only.problems[0]


VALUES = st.none() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=2)
VALUES |= st.dictionaries(st.text(max_size=6), st.none() | st.text(max_size=6), max_size=2)
FIELDS = st.sampled_from(["command", "args", "env", "url", "headers", "type", "cwd", "x"])


@settings(max_examples=50)
@given(servers=st.dictionaries(st.text(max_size=4), st.dictionaries(FIELDS, VALUES) | VALUES, max_size=4))
def test_each_server_is_an_entry_or_a_problem(servers: dict[str, object]) -> None:
    file: Found = read("Cursor", "mcp.json", json.dumps({"mcpServers": servers}).encode(), Path("/h"), {})
    assert len(file.entries) + sum("was left out" in problem for problem in file.problems) == len(servers)
    for entry in file.entries:
        check_entry(entry)
