"""A chain file -> a chain, or every problem in it with its position: yaml, json and md alike.

Not here: whether the steps fit together (``check``), and where chains of a name live (``find``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleet.blueprint.beside import path_from, text_of
from fleet.blueprint.explain import check
from fleet.blueprint.wording import in_order
from fleet.chain.markdown import data_of
from fleet.chain.schema import ChainFile, Step, Task
from fleet.errors import InvalidFile, Problem, UsageProblem
from fleet.yaml import Document, KeyPath, read

__all__ = ["Chain", "load_chain", "tasks_of"]


@dataclass(frozen=True, slots=True)
class Chain:
    """A valid chain and where it came from."""

    path: Path
    file: ChainFile
    folder: Path  #: absolute; paths of schemas and agents are relative to it
    positions: Document
    schemas: Mapping[str, Any]  #: every schema that is a file of its own, by its path as written

    def problem(self, key: KeyPath, text: str) -> Problem:
        """Say ``text`` of a key of this file, at its position."""
        return self.positions.problem(key, text)

    def schema(self, written: Mapping[str, Any] | str | None) -> Mapping[str, Any] | bool | None:
        """An ``outputSchema`` as a value, whichever way it was written."""
        return self.schemas[written] if isinstance(written, str) else written


def load_chain(path: Path) -> Chain:
    """Read one chain.

    Raises:
        InvalidFile: with every problem at once, sorted by position.
        UsageProblem: a schema is not one.
    """
    document = data_of(path) if path.suffix == ".md" else read(path, what="chain")
    file, problems = check(document, ChainFile)
    folder = path.parent.absolute()
    if file is None or document.problems:
        raise InvalidFile(in_order((*document.problems, *problems)))
    schemas: dict[str, Any] = {}
    found = list(_read_schemas(document, file, folder, schemas))
    if found:
        raise InvalidFile(in_order(found))
    return Chain(path, file, folder, document, schemas)


def tasks_of(step: Step) -> tuple[Task, ...]:
    """The tasks of a step: one, several, or the template of a fan-out."""
    if step.parallel is None:
        return (step,)
    return (step.parallel,) if isinstance(step.parallel, Task) else step.parallel


def _read_schemas(
    document: Document, file: ChainFile, folder: Path, schemas: dict[str, Any]
) -> Iterator[Problem]:
    """Read the schemas that are files, and check all of them; the problems."""
    from fleet.dispatch.structured import check_schema

    for key, written in _schemas(file):
        schema = written
        if isinstance(written, str):
            text, problem = text_of(path_from(written, folder))
            if problem is None:
                try:
                    schema = schemas[written] = json.loads(text)
                except ValueError as error:
                    problem = f"not JSON: {path_from(written, folder)}: {error}"
            if problem is not None:
                yield document.problem(key, problem)
                continue
        if not isinstance(schema, Mapping | bool):
            yield document.problem(key, "a JSON Schema is a map")
            continue
        try:
            check_schema(schema)
        except UsageProblem as error:
            yield document.problem(key, error.message)


def _schemas(file: ChainFile) -> Iterator[tuple[KeyPath, Mapping[str, Any] | str]]:
    for number, step in enumerate(file.chain):
        at: KeyPath = ("chain", number)
        for index, task in enumerate(tasks_of(step)):
            below: KeyPath = (
                () if step.parallel is None else ("parallel",) if step.expand else ("parallel", index)
            )
            if task.output_schema is not None:
                yield (*at, *below, "outputSchema"), task.output_schema
        if step.collect is not None and step.collect.output_schema is not None:
            yield (*at, "collect", "outputSchema"), step.collect.output_schema
