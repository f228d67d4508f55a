"""What the doctor finds of the window, each in a process of its own, as a person would call it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = (
    "from app.launch.doctor import look\nfor f in look(): print(f.subject, f.health, f.text, f.hint, sep='|')"
)


def findings(code: str = SHOW, **environment: str) -> list[list[str]]:
    clean = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**clean, **environment}, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [line.split("|") for line in done.stdout.splitlines()]


@pytest.mark.skipif(sys.platform != "linux", reason="fontconfig finds the fonts on Linux")
def test_without_installed_fonts_it_names_what_cannot_be_shown(tmp_path: Path) -> None:
    settings = tmp_path / "fonts.conf"
    settings.write_text(f"<fontconfig><dir>{tmp_path}</dir><cachedir>{tmp_path}</cachedir></fontconfig>")
    _, fonts, lacking = findings(QT_QPA_PLATFORM="offscreen", FONTCONFIG_FILE=str(settings))
    assert fonts == ["Fonts", "ok", "Inter for text, JetBrains Mono for code", ""]
    assert lacking[:2] == ["Characters", "note"]
    assert "Chinese, Japanese, Korean, emoji" in lacking[2]
    assert lacking[3].endswith("apt-get install fonts-noto-cjk fonts-noto-color-emoji fonts-noto-core")
    # And without the shipped ones no text can be shown at all.
    code = f"from app.theme import fonts\nfrom pathlib import Path\nfonts.FONTS = Path('/nowhere')\n{SHOW}"
    _, fonts, *_ = findings(code, QT_QPA_PLATFORM="offscreen", FONTCONFIG_FILE=str(settings))
    assert fonts[1] == "broken"
    assert "Inter-Regular.otf" in fonts[2]


@pytest.mark.skipif(sys.platform != "linux", reason="Qt checks the locale's encoding on Linux only")
@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_a_c_locale_prints_no_warning(locale: str) -> None:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "LC_ALL": locale}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], capture_output=True, text=True, env=environment, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_display_it_says_so_and_looks_off_screen() -> None:
    code = f"import os; os.environ.pop('QT_QPA_PLATFORM', None)\n{SHOW}"
    note, window, fonts, *_ = findings(code)
    assert [note[:2], window[:2], fonts[:2]] == [["Window", "note"], ["Window", "ok"], ["Fonts", "ok"]]
    assert "No display" in note[2]
    assert "on offscreen" in window[2]
    assert "for text" in fonts[2]


def test_a_missing_library_is_broken_and_ends_the_look() -> None:
    code = "from app.launch import doctor\n"
    code += f"doctor.display_problem = lambda *a: 'It misses libX.\\nInstall it.'\n{SHOW}"
    (found,) = findings(code, QT_QPA_PLATFORM="offscreen")
    assert found == ["Window", "broken", "It misses libX.", "Install it."]
