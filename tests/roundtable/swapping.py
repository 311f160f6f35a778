"""A folder that turns into a link to elsewhere and back, again and again, while something writes below it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["swapping"]


@contextmanager
def swapping(folder: Path, elsewhere: Path) -> Iterator[None]:
    """Swap until the block ends; then ``folder`` is a folder again."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder.with_name(f"{folder.name}-kept")
    has_ended = threading.Event()

    def swap() -> None:
        while not has_ended.is_set():
            folder.rename(kept)
            _link(folder, elsewhere)
            has_ended.wait(0.0005)
            if folder.is_symlink():
                folder.unlink()
            _put_back(kept, folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        has_ended.set()
        swapper.join()


def _link(folder: Path, elsewhere: Path) -> None:
    try:
        folder.symlink_to(elsewhere)
    except FileExistsError:
        return  # the writer was faster and made it anew


def _put_back(kept: Path, folder: Path) -> None:
    while True:
        try:
            kept.rename(folder)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # the writer was faster
        else:
            return
