"""`draftlight completion`: a shell completion script generated from the parsers.

It completes commands, flags, choices, file arguments and the keys of `--set`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from shlex import quote

from core.settings import declared

_SHELLS = ("bash", "zsh", "fish")

_BASH = """_draftlight() {
    local cur="${COMP_WORDS[COMP_CWORD]}" at=draftlight words='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$at ${COMP_WORDS[i]}" in
            %(commands)s) at="$at ${COMP_WORDS[i]}" ;;
        esac
    done
    case "$at ${COMP_WORDS[COMP_CWORD-1]}" in
%(values)s
        *) case "$at" in
%(words)s
        esac ;;
    esac
    if [ "$words" = FILES ]; then
        local IFS=$'\\n'
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
    else
        case "$words" in *=) compopt -o nospace 2>/dev/null ;; esac
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    fi
}
complete -F _draftlight draftlight
"""

_FISH = """function __draftlight_at
    set -l at draftlight
    for word in (commandline -opc)[2..-1]
        contains -- "$at $word" %(commands)s; and set at "$at $word"
    end
    test "$at" = "$argv"
end
complete -c draftlight -f
"""


def add_arguments(parser: argparse.ArgumentParser, root: argparse.ArgumentParser) -> None:
    """Add the shell argument. `root` is the parser of all commands."""
    parser.add_argument("shell", choices=_SHELLS)
    parser.set_defaults(run=_run, root=root)


def _run(options: argparse.Namespace) -> int:
    parsers = dict(walk(options.root))
    if options.shell == "zsh":
        print("autoload -Uz compinit bashcompinit && compinit && bashcompinit")
    print(_fish(parsers) if options.shell == "fish" else _bash(parsers), end="")
    return 0


def walk(
    parser: argparse.ArgumentParser, at: str = "draftlight"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All parsers with the words of their command."""
    yield at, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from walk(inner, f"{at} {name}")


def _bash(parsers: dict[str, argparse.ArgumentParser]) -> str:
    values, words = [], []
    for at, parser in parsers.items():
        offered: list[str] = []
        files = False
        for action in parser._actions:
            offered += action.option_strings or _values(action)
            files = files or (not action.option_strings and _takes_files(action))
            if action.nargs != 0 and action.option_strings:
                flags = "|".join(quote(f"{at} {flag}") for flag in action.option_strings)
                given = "FILES" if _takes_files(action) else " ".join(_values(action))
                values.append(f"        {flags}) words={quote(given)} ;;")
        flags_or_files = f'case "$cur" in -*) words={quote(" ".join(offered))} ;; *) words=FILES ;; esac'
        words.append(
            f"            {quote(at)}) {flags_or_files if files else 'words=' + quote(' '.join(offered))} ;;"
        )
    commands = "|".join(quote(at) for at in parsers if " " in at)
    return _BASH % {"commands": commands, "values": "\n".join(values), "words": "\n".join(words)}


def _fish(parsers: dict[str, argparse.ArgumentParser]) -> str:
    lines = []
    for at, parser in parsers.items():
        start = f"complete -c draftlight -n {quote(f'__draftlight_at {at}')}"
        for action in parser._actions:
            line = start
            for flag in action.option_strings:
                line += f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
            if action.option_strings and action.nargs != 0:
                # Without -x, fish offers files as values.
                line += " -r" if _takes_files(action) else " -x"
            if _takes_files(action):
                line += " -F"
            elif values := _values(action):
                line += f" -a {quote(' '.join(values))}"
            if line != start:
                lines.append(line)
    commands = " ".join(quote(at) for at in parsers if " " in at)
    return _FISH % {"commands": commands} + "\n".join(lines) + "\n"


def _values(action: argparse.Action) -> list[str]:
    """The possible values of an argument, if it has a fixed set."""
    known = {setting.key: setting for setting in declared()}
    if "--set" in action.option_strings:
        return [f"{key}=" for key in known]
    choices = action.choices
    if choices is None and action.dest in known:
        choices = known[action.dest].choices
    return [str(choice) for choice in choices or ()]


def _takes_files(action: argparse.Action) -> bool:
    """Whether the value is a file or folder, judged by the argument's type and metavar."""
    words = f"{getattr(action.type, '__name__', '')} {action.metavar or ''}".lower()
    return action.nargs != 0 and any(word in words for word in ("file", "folder", "path"))
