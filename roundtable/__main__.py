"""``python -m roundtable``."""

from roundtable.cli import main

main()
