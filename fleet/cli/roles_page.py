"""The page of ``roles --help`` as the parser makes it, kept so that nobody waits for the parser."""

from __future__ import annotations

__all__ = ["PAGE"]

PAGE = """\
Usage: roles [OPTIONS] [FILE]

  Print a roles manifest or a blueprint as a plan or as a script.

  Without FILE: roles.yaml, fleet.roles.yaml, orphus.roles.yaml, the only
  *.roles.yaml here, or blueprints/roles.yaml.

Options:
  --format [plan|json|sh|tmux|orca]
                                  A listing for people or programs, or a shell
                                  script: a line per role, or one that starts
                                  all of them.  [default: plan]
  --binary NAME                   Start this program for every role, with
                                  --name, --provider, …
  --session-name NAME             The tmux session; default fleet-<task>.
  --layout [windows|tiled|even-horizontal|even-vertical|main-horizontal|main-vertical]
                                  Windows, or panes of one window.
  --replace                       The script ends a session of the same name
                                  first.
  --schema                        Print the JSON Schema of a roles manifest and
                                  stop.
  -h, --help                      Show this message and exit.

  Example: roles --format tmux | sh
"""
