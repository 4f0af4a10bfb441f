"""`python -m weftline` is the command line."""

import sys

from weftline.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
