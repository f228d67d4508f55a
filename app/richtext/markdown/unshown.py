"""What could not be shown as it should be is written to the log: what it was, and where it failed. No Qt.

Two places ask for this. A block that cannot be read as Markdown stands as it was written; a text
that cannot be laid out or painted has a sentence in its place, and its source can still be copied.
No message keeps the others, or the window, from opening.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("draftlight.window.unshown")


def report(what: str, error: Exception) -> None:
    """`what` failed with `error`. Nothing of the text itself is logged."""
    LOG.error("%s could not be shown: %s", what, type(error).__name__, exc_info=error)
