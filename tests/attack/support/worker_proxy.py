"""The worker's process as a window starts it in `window-kills`: passes bytes to and from the kept worker.

Run by its path with `-I -S`, so that it is there in milliseconds. Ends when either side ends.
"""

from __future__ import annotations

import os
import select
import socket
import sys


def main() -> None:
    """`worker_proxy.py SOCKET`"""
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1])
    outlet = {0: link.fileno(), link.fileno(): 1}
    while True:
        for inlet in select.select(list(outlet), [], [])[0]:
            data = os.read(inlet, 65536)
            if not data:
                return
            while data:
                data = data[os.write(outlet[inlet], data) :]


if __name__ == "__main__":
    main()
