"""The command line's defaults in a file: what they change, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.cli.arguments import read_config
from core.cli.command_line import parser
from core.cli.serve import base_settings


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    return tmp_path / "config.toml"


def test_it_gives_the_defaults_and_flags_go_before_it(
    config: Path, toy_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(
        f"\ufeffmodel = {json.dumps(str(toy_folder))}\n[sampling]\nmax_tokens = 4\n[ngram_simple]\nk = 3\n"
    )
    for flags, tokens in (([], 4), (["--max-tokens", "6"], 6)):
        assert main(["generate", "--prompt", "x", "--json", *flags]) == 0
        last = json.loads(capsys.readouterr().out.splitlines()[-1])
        settings = last["effective"]["settings"]
        assert (settings["sampling"]["max_tokens"], settings["ngram_simple"]["k"]) == (tokens, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sampling]\nmax_token = 4", "Did you mean sampling.max_tokens"),
        ("[sampling]\nmax_tokens = 0", "from 1 to"),
        ("modle = 'x'", "only model may be outside"),
        ("model = 3", "model “3” is not a string"),
        ("[sampling", "cannot be read"),
        ("a = " + "[" * 5000, "cannot be read"),
    ],
)
def test_what_is_wrong_in_it_is_named(
    config: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(text)
    assert main(["generate", "--prompt", "x"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert str(config) in said


def test_its_paths_start_at_its_folder(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text(
        'model = "models/small"\n[cacheback]\nfrozen_file = "tables/mine"\n'
        '[draft_model]\nmodel = "owner/name"\n'
    )
    (tmp_path / "models" / "small").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    model, settings = read_config()
    assert model == str(tmp_path / "models" / "small")
    assert settings.cacheback.frozen_file == str(tmp_path / "tables" / "mine")
    assert settings.draft_model.model == "owner/name"


@pytest.mark.parametrize(
    ("text", "flags", "mode", "learn"),
    [
        ("", [], "off", False),
        ("[prefill]\nmode = 'auto'\n[tables]\nlearn = true\n", [], "auto", True),
        ("", ["--set", "tables.learn=true", "--specprefill", "on"], "on", True),
        ("[tables]\nlearn = false\n", ["--learn"], "off", True),
    ],
)
def test_it_and_the_flags_go_before_the_defaults_of_a_server(
    config: Path, text: str, flags: list[str], mode: str, learn: bool
) -> None:
    config.write_text(text)
    settings = base_settings(parser().parse_args(["serve", *flags]), None)
    assert (settings.prefill.mode, settings.tables.learn) == (mode, learn)
