"""Another program, from which something is copied: it owns the clipboard until its end."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel


def main() -> None:
    application = QApplication([])
    # X lets only programs with a window have the clipboard.
    window = QLabel("elsewhere")
    window.setGeometry(0, 0, 8, 8)
    window.show()
    text = Path(sys.argv[1]).read_text("utf-8")

    def copy() -> None:
        QGuiApplication.clipboard().setText(text)
        window.hide()
        print("copied", flush=True)

    QTimer.singleShot(100, copy)
    application.exec()


if __name__ == "__main__":
    main()
