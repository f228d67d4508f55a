"""The completion scripts: what bash really offers, and that nothing of the parsers is missing."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from core.cli import main
from core.cli.command_line import parser
from core.cli.completion import walk


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["gen"], "generate"),
        (["bench", "win"], "window"),
        (["generate", "--max"], "--max-tokens"),
        (["generate", "--specprefill", ""], "auto"),
        (["generate", "--set", "sampling.max"], "sampling.max_tokens="),
        (["--open", "a f"], "a file.txt"),
    ],
)
def test_bash_offers(
    typed: list[str], offered: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a file.txt").touch()
    assert main(["completion", "bash"]) == 0
    ask = 'COMP_WORDS=(draftlight "$@"); COMP_CWORD=$#; _draftlight; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{capsys.readouterr().out}\n{ask}", "bash", *typed],
        cwd=tmp_path, capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert offered in done.stdout.splitlines()
    assert all(line.startswith(typed[-1]) for line in done.stdout.splitlines())


CASES = [
    ("draftlight gen", ["generate"]),
    ("draftlight bench win", ["window"]),
    ("draftlight generate --specp", ["--specprefill"]),
    ("draftlight generate --drafter ngram-m", ["ngram-mod"]),
    ("draftlight generate --set sampling.max", ["sampling.max_tokens="]),
    ("draftlight --open a", ["a_file.txt"]),
    ("draftlight generate --document a", ["a_file.txt"]),
    ("draftlight generate --specprefill a", ["auto"]),
]


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        *CASES,
        ("draftlight generate --specprefill ", ["auto", "off", "on"]),
        ("draftlight generate --seed ", []),
        ("draftlight completion ", ["bash", "fish", "zsh"]),
    ],
)
def test_fish_offers(
    typed: str, offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_file.txt").touch()
    assert main(["completion", "fish"]) == 0
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"{capsys.readouterr().out}\ncomplete -C '{typed}'"],
        cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=20, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == offered


class Terminal:
    """A zsh that somebody types into."""

    def __init__(self, folder: Path) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "HOME": str(folder), "TERM": "xterm", "PS1": "", "LC_ALL": "C"}
        self._shell = subprocess.Popen(
            ["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def typed(self, keys: str, until: str) -> str:
        """What the terminal shows until `until` is there, or for ten seconds."""
        os.write(self._master, keys.encode())
        shown, ends_at = "", time.monotonic() + 10
        while until not in shown and time.monotonic() < ends_at:
            if select.select([self._master], [], [], 0.2)[0]:
                shown += os.read(self._master, 65536).decode(errors="replace")
        return shown

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._master)


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh here")
def test_zsh_offers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a_file.txt").touch()
    assert main(["completion", "zsh"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    terminal = Terminal(tmp_path)
    try:
        said = terminal.typed("source ./script && print rea''dy\n", "ready")
        assert "ready" in said
        assert "compinit" not in said.replace("source ./script", "")
        for typed, (offered,) in CASES:
            whole = typed.rpartition(" ")[0] + " " + offered
            shown = terminal.typed(f"\x15{typed}\t", whole)
            assert whole in shown.replace("\x07", ""), (typed, shown)
    finally:
        terminal.close()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_flag_is_in_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for at, one in walk(parser()):
        lines = [line for line in script.splitlines() if at in line]
        assert lines, at
        for flag in (flag for action in one._actions for flag in action.option_strings):
            wanted = flag
            if shell == "fish":
                wanted = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            assert any(wanted in line for line in lines), (at, flag)


def test_an_unknown_shell_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err
