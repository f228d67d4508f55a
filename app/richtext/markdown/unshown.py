"""Logs text that cannot be shown as intended, with the error. No Qt.

A block that cannot be parsed as Markdown is shown as source; a text that cannot be laid out or painted is
replaced by a sentence, and its source can be copied. Other messages and the window are not affected.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("draftlight.window.unshown")


def report(what: str, error: Exception) -> None:
    """`what` failed with `error`. Nothing of the text itself is logged."""
    LOG.error("%s could not be shown: %s", what, type(error).__name__, exc_info=error)
