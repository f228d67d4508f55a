"""The fonts in resources/fonts: unchanged files with their licences, used whatever the machine has."""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QFontInfo, QRawFont
from PySide6.QtWidgets import QApplication, QLabel

from app.theme.fonts import FONTS, enlarged_ui_font, mono_font, shipped_fonts, ui_font, unloaded_fonts

APP = Path(__file__).parents[3] / "app"
needs_shipped_fonts = pytest.mark.skipif(sys.platform == "darwin", reason="macOS uses the system font")
_FONTCONFIG = (
    '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
    "<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>"
)
_METRICS = """
from app.launch.application import Application
from app.theme.fonts import mono_font, ui_font
from PySide6.QtGui import QFontInfo, QFontMetricsF
application = Application([])
for font in (application.font(), ui_font(13), ui_font(13, 500), ui_font(13, 600), mono_font(12.5)):
    metrics = QFontMetricsF(font)
    print(QFontInfo(font).family(), metrics.horizontalAdvance("Drafted 3.2 tokens"), metrics.height())
"""


def on_a_machine_with(fonts: Path, cache: Path, code: str) -> str:
    """What `code` prints where `fonts` is the only folder of installed fonts."""
    settings = cache / "fonts.conf"
    settings.write_text(_FONTCONFIG.format(fonts=fonts, cache=cache), encoding="utf-8")
    environment = os.environ | {"FONTCONFIG_FILE": str(settings), "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files_are_the_declared_ones() -> None:
    declared = {name: value for font in shipped_fonts() for name, value in font.sha256.items()}
    assert {path.name for path in FONTS.glob("*.[ot]tf")} == set(declared)
    for name, value in declared.items():
        assert hashlib.sha256((FONTS / name).read_bytes()).hexdigest() == value, name


@needs_shipped_fonts
def test_text_and_code_use_them(qapp: QApplication) -> None:
    assert unloaded_fonts() == ()
    assert QFontInfo(ui_font(13)).family() == "Inter"
    assert QFontInfo(mono_font(13)).family() == "JetBrains Mono"
    assert qapp.font() == enlarged_ui_font(13)
    label = QLabel("Draftlight")
    assert QFontInfo(label.font()).family() == "Inter"
    label.deleteLater()


@needs_shipped_fonts
@pytest.mark.parametrize("weight", [400, 500, 600])
def test_each_weight_has_a_font_of_its_own(weight: int, qapp: QApplication) -> None:
    assert QRawFont.fromFont(ui_font(13, weight)).weight() == weight
    styles = {400: "Regular", 500: "Medium", 600: "SemiBold"}
    assert QFontInfo(ui_font(13, weight)).styleName() == styles[weight]


@needs_shipped_fonts
def test_the_machines_fonts_change_no_metrics(tmp_path: Path) -> None:
    here, none = tmp_path / "here", tmp_path / "none"
    for folder in (here, none, none / "fonts"):
        folder.mkdir()
    expected = on_a_machine_with(Path("/usr/share/fonts"), here, _METRICS)
    assert on_a_machine_with(none / "fonts", none, _METRICS) == expected
    assert "JetBrains Mono" in expected


@needs_shipped_fonts
def test_every_character_of_the_interface_is_in_them(qapp: QApplication) -> None:
    fonts = [QRawFont(str(FONTS / name), 13) for name in ("Inter-Regular.otf", "JetBrainsMono-Regular.ttf")]
    lacking: dict[str, str] = {}
    for path in APP.rglob("strings.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for character in node.value:
                    if character.isprintable() and not fonts[0].supportsCharacter(ord(character)):
                        lacking[character] = path.relative_to(APP).as_posix()
    assert lacking == {}
