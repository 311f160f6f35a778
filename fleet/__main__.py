"""``python -m fleet``."""

from fleet.cli import main

main()
