"""`python -m core.cli`, with which Draftlight starts its child processes from a checkout."""

import sys

from core.cli import main

if __name__ == "__main__":
    sys.exit(main())
