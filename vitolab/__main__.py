"""``python -m vitolab``, the same as the command ``vitolab``."""

from vitolab.cli import main

if __name__ == "__main__":
    main()
