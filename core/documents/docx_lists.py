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
from core.documents.parts import Elements, W, parse_part

_LISTS = "word/numbering.xml"
_STYLES = "word/styles.xml"
# Those of thick books are a hundredth.
_MOST_BYTES = 16 * 1024 * 1024
_LEVELS = 9
_HEADING_LEVELS = ("1", "2", "3", "4", "5", "6")
_BULLET = "-"
# Longer ones would multiply with every paragraph.
_MOST_PATTERN_CHARACTERS = 40
_MOST_NUMBER_DIGITS = 9
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
    outline: int | None = None
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
        lists, styles = _Lists(), _Styles()
        for kind, default, reader in (("numbering", _LISTS, lists), ("styles", _STYLES, styles)):
            part = parts.get(kind, default)
            if part in archive.NameToInfo:
                parse_part(archive, part, reader, _MOST_BYTES)
        self._definitions, self._uses, self._styles = lists.definitions, lists.uses, styles.styles
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
            if found.outline is not None and found.outline < len(_HEADING_LEVELS):
                return found.outline + 1
            style = found.base
        else:
            return 0
        if style == "Title":
            return 1
        return int(id_level) if id_level in _HEADING_LEVELS and id_level != style else 0

    def properties(self, style: str) -> dict[str, str]:
        """What text of the style `style` is: `vanish`, `strike` and `dstrike` as 0 or 1, `vertAlign`."""
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


class _Lists(Elements):
    """Reads `word/numbering.xml`."""

    def __init__(self) -> None:
        self.definitions: dict[str, _Definition] = {}
        self.uses: dict[str, _Use] = {}
        self._definition: _Definition | None = None
        self._use: _Use | None = None
        self._level: _Level | None = None
        self._overridden = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag, value = name.removeprefix(W), attributes.get(W + "val", "")
        if tag == "abstractNum":
            self._definition = self.definitions[attributes.get(W + "abstractNumId", "")] = _Definition()
        elif tag == "num":
            self._use = self.uses[attributes.get(W + "numId", "")] = _Use()
        elif tag == "lvlOverride":
            self._overridden = level_number(attributes.get(W + "ilvl", ""))
        elif tag == "lvl":
            self._level = _Level()
            owner = self._use or self._definition
            if owner:
                owner.levels[level_number(attributes.get(W + "ilvl", ""))] = self._level
        elif self._level:
            self._of_level(self._level, tag, value, attributes)
        elif self._use and tag == "abstractNumId":
            self._use.definition = value
        elif self._use and tag == "startOverride":
            self._use.starts[self._overridden] = _number(value, 1)
        elif self._definition and tag == "numStyleLink":
            self._definition.style_link = value

    def end(self, name: str) -> None:
        tag = name.removeprefix(W)
        if tag == "lvl":
            self._level = None
        elif tag == "num":
            self._use = None
        elif tag == "abstractNum":
            self._definition = None

    def _of_level(self, level: _Level, tag: str, value: str, attributes: Mapping[str, str]) -> None:
        if tag == "start":
            level.start = _number(value, 1)
        elif tag == "numFmt":
            level.format = value
        elif tag == "lvlText":
            level.pattern = value[:_MOST_PATTERN_CHARACTERS]
        elif tag == "lvlRestart":
            level.restart = _number(value, 0)
        elif tag == "isLgl":
            level.legal = is_on(attributes)
        elif tag == "pStyle":
            level.style = value


class _Styles(Elements):
    """Reads the lists of `word/styles.xml`."""

    def __init__(self) -> None:
        self.styles: dict[str, _Style] = {}
        self._style = _Style()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag, value = name.removeprefix(W), attributes.get(W + "val", "")
        if tag == "style":
            self._style = self.styles[attributes.get(W + "styleId", "")] = _Style()
        elif tag == "name":
            self._style.name = value.lower()
        elif tag == "outlineLvl":
            self._style.outline = _number(value, _LEVELS)
        elif tag == "basedOn":
            self._style.base = value
        elif tag == "numId":
            self._style.use = value
        elif tag == "ilvl":
            self._style.level = level_number(value)
        elif tag in ("vanish", "strike", "dstrike"):
            self._style.properties[tag] = str(int(is_on(attributes)))
        elif tag in ("vertAlign", "position"):
            self._style.properties[tag] = value


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


def _number(value: str, otherwise: int) -> int:
    """ASCII digits only: `isdigit` knows others that `int` refuses."""
    good = value.isascii() and value.isdigit() and len(value) <= _MOST_NUMBER_DIGITS
    return int(value) if good else otherwise


def is_on(attributes: Mapping[str, str]) -> bool:
    """Whether an element that is there or not, such as `w:vanish`, is on; its value may say otherwise."""
    return attributes.get(W + "val", "1") in ("1", "true", "on")


def level_number(value: str) -> int:
    """The level that an attribute names."""
    return min(_number(value, 0), _LEVELS - 1)
