"""A chain -> a file in any of its forms; what is written loads as the same steps."""

from __future__ import annotations

import json
from pathlib import Path

from fleet.chain.markdown import to_markdown
from fleet.chain.schema import ChainFile
from fleet.deadline import show_duration
from fleet.errors import UsageProblem
from fleet.runs.folder import writing

__all__ = ["save_chain"]

_SPANS = {"timeout", "deadline"}


def save_chain(file: ChainFile, path: Path) -> None:
    """Write ``file`` in the form that the name of ``path`` says: ``.md`` is markdown, the others are JSON.

    JSON is YAML, so ``.yaml`` is one form less to keep right. Nothing is overwritten.

    Raises:
        UsageProblem: there is a file already, or the chain cannot be said in that form.
        StorageFailed: it cannot be written.
    """
    if path.exists():
        raise UsageProblem(f"{path} is there already", hint="name a new file")
    if not path.name.endswith((".yaml", ".yml", ".json", ".md")):
        raise UsageProblem(f"{path}: a chain is a file ending in .yaml, .json or .md")
    if path.suffix == ".md":
        text = to_markdown(file)
    else:
        data = _spans(file.model_dump(mode="json", by_alias=True, exclude_unset=True))
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    with writing(path, hint="choose another folder"):
        path.write_text(text, encoding="utf-8")


def _spans(value: object) -> object:
    """Seconds as durations again, which is how files write them."""
    if isinstance(value, dict):
        return {
            key: show_duration(inner) if key in _SPANS and isinstance(inner, int | float) else _spans(inner)
            for key, inner in value.items()
        }
    return [_spans(inner) for inner in value] if isinstance(value, list) else value
