"""``python -m windrow`` is the command ``windrow``."""

import sys

from windrow.cli import main

if __name__ == "__main__":
    sys.exit(main())
