"""A blueprint as it will be used: every default filled in, every value with where it came from, secrets as stars.

Pure. Written as YAML (`yaml_text`) it is a valid blueprint again, but for the stars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.blueprint.load import Loaded
from fleet.blueprint.schema import AgentDefinition, StrictModel, Team
from fleet.blueprint.starred import starred, starred_variables, starred_words
from fleet.blueprint.written import Entry
from fleet.deadline import show_duration

__all__ = ["origins", "plain", "resolved"]

_DEFAULT = "default"
#: Held in seconds, written as ``1h30m``.
_DURATIONS = frozenset({"deadline", "turn_timeout", "timeout"})
#: What means nothing to a team that only dispatches, and would be warned about if it stood there.
_OF_TALK = frozenset({"rounds", "blocking", "protocol", "drive"})


def resolved(loaded: Loaded) -> dict[str, Entry]:
    """The whole file as entries; a note says where a value came from that does not stand in the file."""
    blueprint = loaded.blueprint
    data = _model(blueprint)
    data["teams"] = Entry({name: Entry(_team(loaded, name, team)) for name, team in blueprint.teams.items()})
    if blueprint.agents:
        data["agents"] = Entry(
            {name: _agent(loaded, name, agent) for name, agent in blueprint.agents.items()}
        )
    if blueprint.pipeline is None and len(blueprint.teams) > 1:
        data["pipeline"] = Entry([Entry(name) for name in blueprint.order], f"{_DEFAULT}: as declared")
    return data


def plain(data: Mapping[str, Entry]) -> dict[str, Any]:
    """The entries as plain data, without their notes."""
    return {key: _plain(entry.value) for key, entry in data.items() if not entry.is_remark}


def origins(data: Mapping[str, Entry], path: str = "") -> dict[str, str]:
    """Dotted key -> its note, for every value that does not stand in the file."""
    found: dict[str, str] = {}
    for key, entry in data.items():
        at = f"{path}.{key}" if path else key
        if entry.note and not entry.is_remark:
            found[at] = entry.note
        if isinstance(entry.value, Mapping):
            found |= origins(entry.value, at)
        elif isinstance(entry.value, list):
            for index, item in enumerate(entry.value):
                if isinstance(item.value, Mapping):
                    found |= origins(item.value, f"{at}[{index}]")
    return found


def _team(loaded: Loaded, name: str, team: Team) -> dict[str, Entry]:
    data = _model(team, without=frozenset() if team.deliberates else _OF_TALK)
    if team.room is None:
        room = loaded.blueprint.room(name)
        data["room"] = Entry(None, f"room: {room} by default; a run adds its id to that", is_remark=True)
    if team.quorum is None and team.deliberates:
        data["quorum"] = Entry(team.quorum_size, f"{_DEFAULT}: all seats")
    if team.deadline_seconds is None:
        data["deadline"] = Entry(None, "deadline: the run's, 30m where nothing names one", is_remark=True)
    return data


def _agent(loaded: Loaded, name: str, agent: AgentDefinition) -> Entry:
    document = loaded.agent_documents.get(name)
    data = _model(agent, is_defaulted=False)
    if document is None:
        return Entry(data)
    data.pop("name", None)  # it is the key already, by which the file was found
    return Entry(data, f"from {document.name}")


def _model(
    model: StrictModel, *, without: frozenset[str] = frozenset(), is_defaulted: bool = True
) -> dict[str, Entry]:
    """The fields in the order of the schema, by the names that files use; no defaults for those in ``without``."""
    data: dict[str, Entry] = {}
    for name, field in type(model).model_fields.items():
        key, value = field.alias or name, getattr(model, name)
        if name in model.model_fields_set:
            data[key] = Entry(_value(name, value))
        elif is_defaulted and value not in (None, (), {}) and name not in without:
            # A level that is not there at all has its notes inside.
            note = "" if isinstance(value, StrictModel) else _DEFAULT
            data[key] = Entry(_value(name, value), note)
    return data


def _value(name: str, value: Any) -> Any:
    if isinstance(value, StrictModel):
        return _model(value)
    if name in _DURATIONS and isinstance(value, float):
        return show_duration(value)
    if name == "env":
        return _entries(starred_variables(value))
    if name in ("args", "command"):
        return _entries(starred_words(value))
    if name in ("vars", "mcp_servers", "hooks", "permission"):
        return _entries(starred(value))
    return _entries(value)


def _entries(value: Any) -> Any:
    if isinstance(value, StrictModel):
        return _model(value)
    if isinstance(value, Mapping):
        return {str(key): Entry(_entries(inner)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [Entry(_entries(inner)) for inner in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain(value)
    return [_plain(item.value) for item in value] if isinstance(value, list) else value
