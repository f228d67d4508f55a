"""`python -m core.cli`: how Draftlight starts its own child processes from a checkout."""

import sys

from core.cli import main

if __name__ == "__main__":
    sys.exit(main())
