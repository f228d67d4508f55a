"""The window of the tool servers: adding, importing, switching on, failing, and taking permissions back."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.features.tools.sheets import ImportSheet, ServerSheet
from app.features.tools.window import ToolsWindow
from app.session.tools.permission import Allowance
from app.shell.window import MainWindow
from tests.app.stage import Stage, click, gone, until

TOKEN = "ghp_0123456789abcdefghij"


async def opened(window: MainWindow) -> ToolsWindow:
    window.menu_actions["tools"].trigger()
    tools = window.windows.find("tools")
    assert isinstance(tools, ToolsWindow)
    await until(lambda: QApplication.activeWindow() is tools)
    return tools


async def added(tools: ToolsWindow, name: str, command: str, environment: str = "") -> None:
    await click(tools.add)
    sheet = tools.findChild(ServerSheet)
    QTest.keyClicks(sheet.name, name)
    sheet.command.setFocus()
    QTest.keyClicks(sheet.command, command)
    sheet.environment.setFocus()
    for line in environment.split("\n"):
        QTest.keyClicks(sheet.environment, line)
        QTest.keyClick(sheet.environment, Qt.Key.Key_Return)
    await click(sheet.save)


def rows(tools: ToolsWindow) -> list[tuple[str, str]]:
    return [(row.title, row.says) for row in tools.servers.list.rows]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


async def test_an_added_server_is_shown_whole_and_does_not_run(stage: Stage, home: Path) -> None:
    window = await stage.ready(folder=home / "chats")
    tools = await opened(window)
    assert tools.servers.list.accessibleDescription().startswith("No servers yet")
    await added(tools, "Notes", "notes-server --root 'My notes' $HOME", f"LOG=1\nAPI_TOKEN={TOKEN}")
    assert rows(tools) == [("Notes", "Off")]
    command = tools.servers.detail.command.toPlainText()
    assert "notes-server --root 'My notes' '$HOME'" in command  # no shell expands it
    assert "LOG=1" in command
    assert "API_TOKEN=••••" in command
    assert TOKEN not in command
    assert tools.servers.detail.state.text().startswith("Off. It does not run.")
    secrets = home / "home" / "data" / "tool_secrets.json"
    await until(lambda: secrets.exists() and TOKEN in secrets.read_text("utf-8"))
    await asyncio.sleep(0.05)
    assert window.controller.tool_servers.client.states == {}
    assert window.controller.tool_servers.client.pid is None
    await stage.close()
    stored = (home / "chats" / "preferences.json").read_text("utf-8")
    assert "notes-server" in stored
    assert TOKEN not in stored


async def test_a_server_that_cannot_be_one_is_not_saved(stage: Stage, home: Path) -> None:
    window = await stage.ready()
    tools = await opened(window)
    await added(tools, "Web", "server 'open")
    sheet = tools.findChild(ServerSheet)
    assert sheet.problem.text() == "A quotation mark in the command is not closed."
    sheet.kind.set_value("address")
    QTest.keyClicks(sheet.address, "http://example.org/mcp")
    sheet.headers.setFocus()
    QTest.keyClicks(sheet.headers, "Authorization: Bearer abc")
    await click(sheet.save)
    assert "unencrypted" in sheet.problem.text()
    assert rows(tools) == []
    await click(sheet.cancel)
    await until(lambda: not tools.findChildren(ServerSheet))


async def test_servers_of_other_programs_are_offered_with_their_commands(stage: Stage, home: Path) -> None:
    config = home / ".cursor" / "mcp.json"
    config.parent.mkdir()
    servers = {
        "Files": {
            "command": "npx",
            "args": ["-y", "files-server", "/data", "--key", TOKEN, "db://me:hidden1@host/a"],
            "env": {"API_KEY": TOKEN},
        },
        "Old": {"url": "https://example.org/sse", "type": "sse"},
    }
    config.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    window = await stage.ready(folder=home / "chats")
    tools = await opened(window)
    await click(tools.import_)
    await until(lambda: bool(tools.findChildren(ImportSheet)))
    sheet = tools.findChild(ImportSheet)
    ((box, _),) = sheet.boxes
    assert not box.isChecked()
    assert not sheet.accept_button.isEnabled()
    says = box.accessibleDescription()
    assert "npx -y files-server /data --key '••••••••' 'db://me:••••••••@host/a'" in says
    assert "API_KEY=••••" in says
    assert TOKEN not in says
    assert "hidden1" not in says
    assert any("sse" in problem.text() for problem in sheet.problems)
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Space)
    await click(sheet.accept_button)
    assert rows(tools) == [("Files", "Off")]
    assert window.controller.tool_servers.client.pid is None
    command = tools.servers.detail.command.toPlainText()
    assert "--key '••••••••' 'db://me:••••••••@host/a'" in command
    secrets = home / "home" / "data" / "tool_secrets.json"
    await until(lambda: secrets.exists() and secrets.read_text("utf-8").count(TOKEN) == 2)
    await stage.close()
    stored = (home / "chats" / "preferences.json").read_text("utf-8")
    assert "files-server" in stored
    assert TOKEN not in stored
    assert "hidden1" not in stored


async def test_a_secret_of_a_command_stays_hidden_when_the_server_is_edited(stage: Stage, home: Path) -> None:
    window = await stage.ready()
    tools = await opened(window)
    await added(tools, "Notes", "notes-server --key hidden1")
    path = home / "home" / "data" / "tool_secrets.json"

    def secrets() -> dict[str, dict[str, str]]:
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    await until(lambda: secrets() == {"Notes": {"--key ••••••••": "hidden1"}})
    await click(tools.servers.detail.edit)
    sheet = tools.findChild(ServerSheet)
    assert sheet.command.value == "notes-server --key '••••••••'"
    sheet.command.set_value("notes-server --other '••••••••'")
    await click(sheet.save)
    assert sheet.problem.text().startswith("Enter the secret in “--other ••••••••” again")
    sheet.command.set_value("notes-server --verbose --key '••••••••'")
    sheet.name.setText("Papers")
    await click(sheet.save)
    await until(lambda: secrets() == {"Papers": {"--key ••••••••": "hidden1"}})
    assert rows(tools) == [("Papers", "Off")]
    await click(tools.servers.detail.edit)
    sheet = tools.findChild(ServerSheet)
    sheet.command.set_value("notes-server --key hidden2 --token hidden3")
    await click(sheet.save)
    await until(lambda: secrets() == {"Papers": {"--key ••••••••": "hidden2", "--token ••••••••": "hidden3"}})
    window.controller.tool_servers.remove("Papers")
    await until(lambda: secrets() == {})


@pytest.mark.sweep
async def test_a_missing_program_is_named_and_removed(stage: Stage, home: Path) -> None:
    window = await stage.ready()
    tools = await opened(window)
    await added(tools, "Clock", "/nowhere/clock-server --utc")
    detail = tools.servers.detail
    QTest.mouseClick(detail.switch, Qt.MouseButton.LeftButton, pos=detail.switch.rect().center())
    await until(lambda: rows(tools) == [("Clock", "Failed")])
    assert "clock-server" in detail.state.text()
    assert detail.switch.isChecked()
    window.controller.tool_choice.show()
    assert "clock-server" in window.views.composer.tools.choice.servers[0].says
    await click(detail.restart)
    await until(lambda: rows(tools) == [("Clock", "Failed")])
    QTest.mouseClick(detail.switch, Qt.MouseButton.LeftButton, pos=detail.switch.rect().center())
    await until(lambda: rows(tools) == [("Clock", "Off")])
    await click(detail.remove)
    question = next(each for each in tools.findChildren(QApplication.activeModalWidget().__class__))
    await click(question.answers["remove"])
    await until(lambda: rows(tools) == [])


@pytest.mark.sweep
async def test_a_server_that_runs_shows_its_tools_and_what_it_writes(stage: Stage, home: Path) -> None:
    server = Path(__file__).parents[2] / "core" / "tools" / "plain_server.py"
    window = await stage.ready()
    tools = await opened(window)
    await added(tools, "Plain", f"{sys.executable} {server} {home} banner")
    detail = tools.servers.detail
    QTest.mouseClick(detail.switch, Qt.MouseButton.LeftButton, pos=detail.switch.rect().center())
    await until(lambda: "tools" in rows(tools)[0][1])
    listed = detail.tools.list
    await until(lambda: all(row.tokens for row in listed.rows), what="the tokens are not counted")
    assert "echo" in [row.title for row in listed.rows]
    assert "tokens." in detail.state.text()
    listed.select("echo")
    assert "Schema of the arguments" in detail.tools.text.toPlainText()
    button = window.views.composer.tools
    window.activateWindow()
    await click(button)
    await until(lambda: bool(button.popover.boxes))
    assert "echo" in [tool.tool for tool in button.popover.boxes]
    button.popover.close()
    pid = window.controller.tool_servers.state("Plain").pid
    assert pid
    QTest.mouseClick(detail.switch, Qt.MouseButton.LeftButton, pos=detail.switch.rect().center())
    await until(lambda: rows(tools) == [("Plain", "Off")])
    await until(lambda: gone(pid))
    await until(lambda: button.popover.boxes == {})


async def test_what_is_allowed_is_listed_and_taken_back(stage: Stage, home: Path) -> None:
    window = await stage.ready()
    here = window.controller.chats.open.id
    allowances = (
        Allowance("f" * 64, "Files", "read", "chat", here),
        Allowance("f" * 64, "Clock", "now", "always"),
    )
    window.controller.home.preferences.change(tool_allowances=allowances)
    tools = await opened(window)
    tools.pages.set_value("allowed")
    listed = tools.allowed.list
    assert [(row.title, row.server) for row in listed.rows] == [("read", "Files"), ("now", "Clock")]
    assert listed.rows[1].where == "All chats"
    listed.select(listed.rows[1].id)
    await click(tools.allowed.take_back)
    assert window.controller.home.preferences.now.tool_allowances == allowances[:1]
    await click(tools.allowed.take_back_all)
    assert window.controller.home.preferences.now.tool_allowances == ()
    assert listed.accessibleDescription().startswith("No tools are allowed without asking")
