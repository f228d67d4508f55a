"""The completion scripts: what bash really offers, and that nothing of the parsers is missing."""

from __future__ import annotations

import subprocess
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
