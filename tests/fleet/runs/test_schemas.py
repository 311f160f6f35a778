"""The published schemas are those of the code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fleet.runs.events import event_schema
from fleet.runs.results import result_schema

REFERENCE = Path(__file__).parent.parent.parent.parent / "docs" / "reference"


@pytest.mark.parametrize(("name", "schema"), [("event", event_schema), ("result", result_schema)])
def test_the_published_schema_is_current(name: str, schema: Callable[[], dict[str, Any]]) -> None:
    published = json.loads((REFERENCE / f"{name}.schema.json").read_text())
    assert published == schema(), f"fleet schema {name} > docs/reference/{name}.schema.json"
    Draft202012Validator.check_schema(published)
