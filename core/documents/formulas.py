"""Formulas of spreadsheets as text: at another cell, in OpenDocument's form, the addresses of links. Pure."""

from __future__ import annotations

import re

_MOST_CHARACTERS = 8_192  # Excel's limit
# Texts and quoted names of sheets stay as they are; names, functions and numbers are not references.
_PIECE = re.compile(
    r""""(?:[^"]|"")*"|'(?:[^']|'')*'!?|\[[^\]]*\]"""
    r"|(?<![A-Za-z0-9_.$])(?:(?P<column_sign>\$?)(?P<column>[A-Za-z]{1,3})(?P<row_sign>\$?)(?P<row>[0-9]{1,7})"
    r"(?![A-Za-z0-9_(.!])|(?P<columns>\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3})(?![A-Za-z0-9_(.!])"
    r"|(?P<rows>\$?[0-9]{1,7}:\$?[0-9]{1,7})(?![A-Za-z0-9_(.!]))"
)
_ONE = re.compile(r"(\$?)([A-Za-z]+|[0-9]+)")
_LINK = re.compile(r'\bHYPERLINK\(\s*"((?:[^"]|"")+)"\s*[,;)]', re.IGNORECASE)
_OPEN_REFERENCE = re.compile(r'"(?:[^"]|"")*"|\[([^\]]*)\]')
_PREFIX = re.compile(r"[a-z]+:=|=")


def shifted(formula: str, rows: int, columns: int) -> str:
    """The formula of a cell as it is that many rows below and columns to the right."""

    def moved(found: re.Match[str]) -> str:
        if found["row"]:
            column = _moved_column(found["column"], 0 if found["column_sign"] else columns)
            row = int(found["row"]) + (0 if found["row_sign"] else rows)
            is_outside = not column or row < 1
            return "#REF!" if is_outside else f"{found['column_sign']}{column}{found['row_sign']}{row}"
        if found["columns"]:
            return _ONE.sub(
                lambda one: one[1] + (_moved_column(one[2], 0 if one[1] else columns) or "#REF!"), found[0]
            )
        if found["rows"]:
            return _ONE.sub(lambda one: f"{one[1]}{int(one[2]) + (0 if one[1] else rows)}", found[0])
        return found[0]

    return _PIECE.sub(moved, formula[:_MOST_CHARACTERS])


def column_number(letters: str) -> int:
    """1 for `B`, from 0."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def column_letters(column: int) -> str:
    """`B` for column 1."""
    letters = ""
    column += 1
    while column > 0:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _moved_column(letters: str, columns: int) -> str:
    number = column_number(letters) + columns
    return "" if number < 0 else letters if not columns else column_letters(number)


def link_address(formula: str) -> str:
    """The address that `HYPERLINK(address, words)` leads to; empty if it is not a text in the formula."""
    found = _LINK.search(formula[:_MOST_CHARACTERS])
    return found[1].replace('""', '"') if found else ""


def open_formula(formula: str) -> str:
    """An OpenDocument formula, such as `of:=[.A1]*2`, as it is shown: `=A1*2`."""
    found = _PREFIX.match(formula)
    inside = formula[found.end() :] if found else formula

    def plain(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        return ":".join(part.removeprefix("$").removeprefix(".") for part in found[1].split(":"))

    return f"={_OPEN_REFERENCE.sub(plain, inside[:_MOST_CHARACTERS])}" if inside else ""
