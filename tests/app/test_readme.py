"""The README: its pictures show today's window, and its figures say what they rest on."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.app.readme_pictures import MANIFEST, PICTURES, manifest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_pictures_are_of_today_s_window() -> None:
    kept = json.loads(MANIFEST.read_text("utf-8"))
    assert kept == manifest(kept["answer"]), "Run: make readme-pictures"


def test_every_picture_is_shown_and_current() -> None:
    shown = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert sorted(ROOT / path for path in shown) == sorted(PICTURES)
    assert {path for path in PICTURES[0].parent.iterdir() if path.suffix != ".json"} == {*PICTURES}


def test_the_first_lines_name_the_methods() -> None:
    opening = README.split("\n\n")[1]
    for name in ("n-gram tables", "Cacheback", "SpecPrefill"):
        assert name in opening
    assert "(docs/numerics.md)" in README.split("## ")[0]


def test_links_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in target or (ROOT / target).exists(), target
