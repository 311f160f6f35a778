"""A text with ``{{ … }}`` in it and values -> the text, within bounds of size and work; the door to jinja2.

What may stand in a template is spelled out below and everything else is refused before anything runs: values,
arithmetic, conditions, loops over lists and ranges, a few filters. There are no attributes, no calls but ``range``,
no assignments and no other files, so that a text of a stranger can neither reach the interpreter nor keep it busy.

Pure. A value is never template source: what it brings stands in the text as it is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import TracebackType
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

__all__ = ["MAX_CHARS", "MAX_WORK", "Broken", "render", "variables"]

#: Characters of a template, of a value and of what comes out; a brief is far below it.
MAX_CHARS = 100_000
#: Parts of loops that may be run through in one text, each turn counting all that stands in the loop.
MAX_WORK = 200_000
#: Numbers stay below it, so that no product takes long.
_MAX_NUMBER = 10**18
#: Numbers in one range.
_MAX_RANGE = 1000
#: Places behind the point.
_MAX_DIGITS = 12

_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.List, nodes.Tuple),
    *(nodes.If, nodes.For, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos),
    *(nodes.Concat, nodes.Filter, nodes.Test, nodes.Keyword, nodes.Call, nodes.Getattr),
)
#: What people call the parts that are refused.
_NAMES = {
    "Assign": "set",
    "AssignBlock": "set",
    "CallBlock": "call",
    "FilterBlock": "filter",
    "FromImport": "import",
    "Getitem": "an index",
    "Pow": "**",
    "Slice": "an index",
    "With": "with",
}
#: Names that no template can say.
_COUNTED, _WORK = "_counted", "_work"
_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%"})
_UNDEFINED = re.compile(r"'(.+)' is undefined")

Scalar = str | int | float | bool


class Broken(Exception):
    """A template that cannot be rendered; its text is one sentence without a full stop."""

    def __init__(self, text: str, *, line: int = 1, variable: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.line = line  #: of the template, from 1
        self.variable = variable  #: the one that has no value, if that is what is wrong


def variables(source: str) -> frozenset[str]:
    """The names a template asks for, with a value or without.

    Raises:
        Broken: it is no template, or has something in it that is refused.
    """
    return frozenset(find_undeclared_variables(_parsed(source)) - {"range"})


def render(source: str, values: Mapping[str, Scalar]) -> str:
    """The text; equal arguments give equal texts.

    Raises:
        Broken: no template, something refused, a variable without a value, or over `MAX_CHARS` or `MAX_WORK`.
    """
    tree = _Metered().visit(_parsed(source))
    environment = _environment()
    try:
        template = environment.from_string(tree)
    except (RecursionError, SyntaxError, MemoryError, ValueError) as error:
        raise Broken("it is nested too deep") from error
    pieces: list[str] = []
    size = 0
    try:
        for piece in template.generate({**values, _WORK: _Work()}):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_CHARS:
                break
    except Broken as error:
        raise Broken(error.text, line=_line(error.__traceback__), variable=error.variable) from error
    except UndefinedError as error:
        found = _UNDEFINED.search(str(error))
        name = found[1] if found else None
        said = f'"{name}" has no value' if name else "a variable has no value"
        raise Broken(said, line=_line(error.__traceback__), variable=name) from error
    except (ArithmeticError, ValueError, TypeError, SecurityError, RecursionError) as error:
        raise Broken(_one_line(error), line=_line(error.__traceback__)) from error
    return _bounded("".join(pieces))


class _Work:
    """What is left of `MAX_WORK` for one rendering."""

    def __init__(self) -> None:
        self._left = MAX_WORK

    def counted(self, items: Iterable[Any], weight: int) -> Iterator[Any]:
        """``items``, each paid for as it is taken."""
        for item in items:
            self._left -= weight
            if self._left < 0:
                raise Broken(f"its loops take more than {MAX_WORK} steps")
            yield item


class _Metered(NodeTransformer):
    """Makes every loop pay for its turns, and ``~`` a bounded join."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - the visitor finds it by the node's name
        weight = 1 + sum(1 for _ in node.find_all(nodes.Node))
        self.generic_visit(node)
        name = nodes.Name(_WORK, "load")
        arguments = [name, nodes.Const(weight)]
        node.iter = nodes.Filter(node.iter, _COUNTED, arguments, [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - as above
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "join", [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = _OPERATORS

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return _bounded(left + right)
        for side in (left, right):
            if not isinstance(side, int | float | StrictUndefined):
                raise Broken(f"{operator} takes numbers")
        result = super().call_binop(context, operator, left, right)
        if not math.isfinite(result) or abs(result) > _MAX_NUMBER:
            raise Broken(f"{operator} gives a number over {_MAX_NUMBER}")
        return result


def _parsed(source: str) -> nodes.Template:
    if len(source) > MAX_CHARS:
        raise Broken(f"a text with {{{{ }}}} in it has at most {MAX_CHARS} characters")
    try:
        tree = _environment().parse(source)
        for node in tree.find_all(nodes.Node):
            refused = _refused(node)
            if refused:
                raise Broken(f"{refused} is not available in a blueprint's texts", line=node.lineno)
    except TemplateSyntaxError as error:
        raise Broken(_one_line(error.message or "no template"), line=error.lineno) from error
    except (RecursionError, ValueError, MemoryError) as error:
        raise Broken("it is nested too deep, or has a number that is too long") from error
    return tree


def _refused(node: nodes.Node) -> str | None:
    """What people call a part that may not be there, or ``None``."""
    if not isinstance(node, _ALLOWED):
        name = type(node).__name__
        return _NAMES.get(name, name.lower())
    if isinstance(node, nodes.For) and node.recursive:
        return "a recursive loop"
    if isinstance(node, nodes.Name) and (node.name.startswith("_") or node.name in ("self", "super")):
        return node.name
    if isinstance(node, nodes.Filter):
        return None if node.name in _FILTERS or node.name in _OWN_FILTERS else f"the filter {node.name}"
    if isinstance(node, nodes.Test):
        return None if node.name in _TESTS else f"the test {node.name}"
    if isinstance(node, nodes.Getattr):
        is_loop = isinstance(node.node, nodes.Name) and node.node.name == "loop"
        is_plain = node.attr in ("index", "index0", "first", "last", "length", "revindex", "revindex0")
        return None if is_loop and is_plain else f".{node.attr}"
    if isinstance(node, nodes.Call):
        is_range = isinstance(node.node, nodes.Name) and node.node.name == "range"
        return None if is_range and not node.dyn_args and not node.dyn_kwargs else "a call"
    return None


@cache
def _environment() -> _Environment:
    # The texts go to programs and models; there is no markup to escape.
    environment = _Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        # YAML has comments of its own, and shell scripts in briefs have `${#name}`.
        comment_start_string="{#-- never --",
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,
    )
    environment.globals = {"range": _range}
    environment.filters = {name: environment.filters[name] for name in _FILTERS}
    environment.filters |= {**_OWN_FILTERS, _COUNTED: _counted}
    environment.tests = {name: environment.tests[name] for name in _TESTS}
    return environment


def _range(*bounds: int) -> list[int]:
    """A list, so that looking for something in it takes no longer than it is."""
    numbers = range(*bounds)
    if numbers[_MAX_RANGE:]:
        raise Broken(f"range gives more than {_MAX_RANGE} numbers")
    return list(numbers)


def _bounded(text: str) -> str:
    if len(text) > MAX_CHARS:
        raise Broken(f"it gives more than {MAX_CHARS} characters")
    return text


def _join(items: Iterable[object], separator: str = "") -> str:
    parts: list[str] = []
    size = 0
    for item in items:
        parts.append(str(item))
        size += len(parts[-1]) + len(separator)
        if size > MAX_CHARS + len(separator):
            raise Broken(f"it gives more than {MAX_CHARS} characters")
    return separator.join(parts)


def _replace(value: object, old: str, new: str) -> str:
    text = str(value)
    if not old:
        raise Broken("replace needs something to replace")
    if len(text) + text.count(old) * (len(new) - len(old)) > MAX_CHARS:
        raise Broken(f"it gives more than {MAX_CHARS} characters")
    return text.replace(old, new)


def _round(value: float, digits: int = 0) -> float | int:
    if not 0 <= digits <= _MAX_DIGITS:
        raise Broken(f"round takes 0 to {_MAX_DIGITS} places")
    return round(value, digits) if digits else round(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _counted(items: Iterable[Any], work: _Work, weight: int) -> Iterator[Any]:
    return work.counted(items, weight)


_FILTERS = (
    "abs",
    "capitalize",
    "d",
    "default",
    "float",
    "int",
    "length",
    "lower",
    "string",
    "title",
    "trim",
    "upper",
)
_OWN_FILTERS: dict[str, Any] = {
    "join": _join,
    "replace": _replace,
    "round": _round,
    "tojson": _json,
}
_TESTS = (
    *("defined", "undefined", "none", "string", "number", "boolean", "true", "false", "odd", "even", "in"),
    *("eq", "ne", "lt", "le", "gt", "ge", "==", "!=", "<", "<=", ">", ">="),
)


def _line(traceback: TracebackType | None) -> int:
    """The line of the template in which an error arose."""
    line = 1
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<template>":
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")
