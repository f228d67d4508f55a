"""A light theme of its own for each test, so that switching it disturbs no other."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication

from app.theme.theme import Theme


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    return Theme("light")
