"""The lists and styles of a Word document: which number or bullet each of its paragraphs has.

A Word paragraph has no number, only its list and level (or its style has them); the number follows from all
paragraphs before it. `word/numbering.xml` has the lists: a definition has nine levels (format, first number,
pattern such as `%1.%2.`); a list uses a definition and may restart it or change levels. Lists of one
definition continue each other's numbers.

    levels  0…8, 0 the outermost; a deeper level restarts after an outer one
    formats as in `numerals`; a bullet of any look is `-`; unknown ones are decimal
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.documents.numerals import figure
from core.documents.parts import Element, W, is_true, read_tree, whole

_LISTS = "word/numbering.xml"
_STYLES = "word/styles.xml"
_LEVELS = 9
_HEADING_LEVELS = ("1", "2", "3", "4", "5", "6")
_BULLET = "-"
# Longer ones would multiply with every paragraph.
_MOST_PATTERN_CHARACTERS = 40
_MOST_BASES = 32


@dataclass
class _Level:
    """`restart`: the outer level (from 1) after which numbering restarts; 0: never, None: after any."""

    start: int = 1
    format: str = "decimal"
    pattern: str = ""
    restart: int | None = None
    legal: bool = False
    style: str = ""


@dataclass
class _Definition:
    levels: dict[int, _Level] = field(default_factory=dict)
    style_link: str = ""


@dataclass
class _Use:
    """One list. `starts` has the numbers to restart with; `levels` replace the definition's."""

    definition: str = ""
    starts: dict[int, int] = field(default_factory=dict)
    levels: dict[int, _Level] = field(default_factory=dict)


@dataclass
class _Style:
    """`outline`: its level in the outline, 0 the highest; 9 is body text."""

    name: str = ""
    outline: int = 9
    base: str = ""
    use: str = ""
    level: int | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ListMark:
    """A paragraph's number or bullet, and its level."""

    text: str
    level: int


class WordLists:
    """Asked once for each paragraph in a list, in order. Without the parts every mark is a bullet."""

    def __init__(self, archive: zipfile.ZipFile, parts: Mapping[str, str]) -> None:
        """`parts` are names of parts by the kind of the relation that names them."""
        names = (parts.get("numbering", _LISTS), parts.get("styles", _STYLES))
        lists, styles = (
            read_tree(archive, name) if name in archive.NameToInfo else Element("") for name in names
        )
        self._definitions = {
            each.get(W + "abstractNumId"): _Definition(_levels(each), value_of(each, "numStyleLink") or "")
            for each in lists.all("abstractNum")
        }
        self._uses = {
            each.get(W + "numId"): _Use(
                value_of(each, "abstractNumId") or "",
                {
                    level_number(level.get(W + "ilvl")): whole(start, 1)
                    for level in each.all("lvlOverride")
                    if (start := value_of(level, "startOverride")) is not None
                },
                _levels(each),
            )
            for each in lists.all("num")
        }
        self._styles = {
            each.get(W + "styleId"): _Style(
                (value_of(each, "name") or "").lower(),
                whole(value_of(each, "pPr", "outlineLvl"), _LEVELS),
                value_of(each, "basedOn") or "",
                value_of(each, "pPr", "numPr", "numId") or "",
                None if (level := value_of(each, "pPr", "numPr", "ilvl")) is None else level_number(level),
                text_properties(each.child("rPr")),
            )
            for each in styles.all("style")
        }
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[tuple[str, int]] = set()
        self._properties: dict[str, dict[str, str]] = {}

    def mark(self, style: str, use: str | None, level: int | None) -> ListMark | None:
        """The mark of the next paragraph, by its own properties, else its style's; None if it is not in a
        list.
        """
        if use is None or level is None:
            styled_use, styled_level = self._of_style(style)
            use = styled_use if use is None else use
            level = styled_level if level is None else level
        if use in ("", "0"):
            return None
        level = level or 0
        found = self._uses.get(use)
        if found is None:
            return ListMark(_BULLET, level)
        name = self._definition_name(found)
        levels = {**self._definitions.get(name, _Definition()).levels, **found.levels}
        if not levels:
            return ListMark(_BULLET, level)
        count = self._counted(name, use, found, levels, level)
        return ListMark(_text(levels, count, level), level)

    def heading_level(self, style: str) -> int:
        """1 to 6 for a heading's style or one based on it, in any language; 0 for other text.

        Word keeps the English names of built-in styles in every language; ids and displayed names differ.
        """
        id_level = style.removeprefix("Heading")
        for _ in range(_MOST_BASES):
            found = self._styles.get(style)
            if found is None:
                break
            if found.name == "title":
                return 1
            level = found.name.removeprefix("heading ")
            if level in _HEADING_LEVELS and level != found.name:
                return int(level)
            if found.outline < len(_HEADING_LEVELS):
                return found.outline + 1
            style = found.base
        else:
            return 0
        if style == "Title":
            return 1
        return int(id_level) if id_level in _HEADING_LEVELS and id_level != style else 0

    def properties(self, style: str) -> dict[str, str]:
        """Properties of text in the style: `vanish`, `strike` and `dstrike` as 0 or 1, `vertAlign`."""
        if style not in self._properties:
            chain: list[dict[str, str]] = []
            base = style
            while len(chain) < _MOST_BASES and (found := self._styles.get(base)) is not None:
                chain.append(found.properties)
                base = found.base
            self._properties[style] = {key: of[key] for of in reversed(chain) for key in of}
        return self._properties[style]

    def _counted(
        self, name: str, use: str, found: _Use, levels: dict[int, _Level], level: int
    ) -> dict[int, int]:
        """The numbers of all levels, with this paragraph's."""
        count = self._counts.setdefault(name, {})
        if level in found.starts and (use, level) not in self._begun:
            count[level] = found.starts[level]
        elif level in count:
            count[level] += 1
        else:
            count[level] = levels.get(level, _Level()).start
        self._begun.add((use, level))
        for inner in range(level + 1, _LEVELS):
            restart = levels.get(inner, _Level()).restart
            if restart is None or level < restart:
                count.pop(inner, None)
        return count

    def _of_style(self, style: str) -> tuple[str, int | None]:
        """The list and the level of a style, or of the ones that it builds on."""
        name = style
        for _ in range(_MOST_BASES):
            found = self._styles.get(name)
            if found is None:
                break
            if found.use:
                return found.use, self._linked_level(found.use, name, found.level)
            name = found.base
        return "", None

    def _linked_level(self, use: str, style: str, level: int | None) -> int | None:
        found = self._uses.get(use)
        if found:
            definition = self._definitions.get(self._definition_name(found), _Definition())
            for index, each in definition.levels.items():
                if each.style == style:
                    return index
        return level

    def _definition_name(self, use: _Use) -> str:
        """A definition may only name the style of the list that has the levels."""
        link = self._definitions.get(use.definition, _Definition()).style_link
        linked = self._uses.get(self._styles.get(link, _Style()).use) if link else None
        return linked.definition if linked else use.definition


def _levels(owner: Element) -> dict[int, _Level]:
    """The levels of a definition, or those that a list replaces."""
    return {
        level_number(each.get(W + "ilvl")): _Level(
            whole(value_of(each, "start"), 1),
            _format(each),
            (value_of(each, "lvlText") or "")[:_MOST_PATTERN_CHARACTERS],
            None if (restart := value_of(each, "lvlRestart")) is None else whole(restart, 0),
            is_on(each.child("isLgl")),
            value_of(each, "pStyle") or "",
        )
        for each in owner.all("lvl")
    }


def _format(level: Element) -> str:
    """The number format of a level: a name, or, for a custom format, its first numbers."""
    found = next(level.all("numFmt"), Element(""))
    name = found.get(W + "val", "decimal")
    return found.get(W + "format", "decimal")[:_MOST_PATTERN_CHARACTERS] if name == "custom" else name


def outline_heading(level: str) -> int:
    """The heading of a level of the outline, 1 to 6; 0 for body text."""
    number = whole(level, _LEVELS)
    return number + 1 if number < len(_HEADING_LEVELS) else 0


def value_of(element: Element, *path: str) -> str | None:
    """The value of the element at `path` inside, which may be empty; None if it does not exist."""
    for tag in path:
        element = element.child(tag)
    return element.get(W + "val") if element.name else None


def text_properties(properties: Element) -> dict[str, str]:
    """Properties of text runs: `vanish`, `strike` and `dstrike` as 0 or 1, `vertAlign`, `position`."""
    found = {each.tag: each for each in properties.elements}
    switches = {tag: str(int(is_on(found[tag]))) for tag in ("vanish", "strike", "dstrike") if tag in found}
    return switches | {tag: found[tag].get(W + "val") for tag in ("vertAlign", "position") if tag in found}


def _text(levels: dict[int, _Level], count: dict[int, int], level: int) -> str:
    own = levels.get(level, _Level())
    if own.format == "bullet":
        return _BULLET
    if own.format == "none":
        return ""
    text = own.pattern
    for each in range(_LEVELS):
        place = f"%{each + 1}"
        if place in text:
            of = levels.get(each, _Level())
            kind = "decimal" if own.legal else of.format
            text = text.replace(place, figure(count.get(each, of.start), kind))
    return text.strip()


def is_on(element: Element) -> bool:
    """Whether an element that is there or not, such as `w:vanish`, is on; its value may say otherwise."""
    return bool(element.name) and is_true(element.get(W + "val", "1"))


def level_number(value: str | None) -> int:
    """The level that an attribute names."""
    return min(whole(value, 0), _LEVELS - 1)
