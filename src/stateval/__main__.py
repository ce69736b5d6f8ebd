"""`python -m stateval`."""

from stateval.cli import main

if __name__ == "__main__":
    main()
