"""One task, many tasks and chains from Python: planned, run to their end, and returned as results.

::

    result = await parallel(["Look at a.py", "Look at b.py"], settings, agent="reviewer")
    print(result.decision.text)  # the bounded return

Not here: blueprints (``conduct``), and runs that go on without their caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fleet.chain.load import load_chain
from fleet.chain.plan import plan_chain
from fleet.conductor import conduct
from fleet.dispatch.shapes import Work, plan_tasks
from fleet.plan import PlanOptions
from fleet.runs.folder import new_run_id
from fleet.runs.results import RunResult
from fleet.runs.run import Watcher
from fleet.settings import Settings

__all__ = ["chain", "parallel", "task"]


async def task(
    text: str,
    settings: Settings,
    *,
    options: PlanOptions | None = None,
    folder: Path | None = None,
    watcher: Watcher | None = None,
    **how: Any,
) -> RunResult:
    """Have one agent (``agent=``) or one program (``command=``) do ``text``; ``how`` as for ``plan_tasks``.

    ``folder`` is the run folder, by default below where the settings were made for.

    Raises:
        UsageProblem, InvalidFile, RuntimeMissing, AgreementNeeded, StorageFailed: nothing was started.
    """
    work = plan_tasks([text], settings, options or PlanOptions(), run=new_run_id(), is_single=True, **how)
    return await _conduct(work, settings, folder, watcher)


async def parallel(
    texts: Sequence[str],
    settings: Settings,
    *,
    options: PlanOptions | None = None,
    folder: Path | None = None,
    watcher: Watcher | None = None,
    **how: Any,
) -> RunResult:
    """Give each of ``texts`` to a member of its own; otherwise as ``task``."""
    work = plan_tasks(texts, settings, options or PlanOptions(), run=new_run_id(), **how)
    return await _conduct(work, settings, folder, watcher)


async def chain(
    file: Path,
    settings: Settings,
    *,
    task: str | None = None,
    options: PlanOptions | None = None,
    folder: Path | None = None,
    watcher: Watcher | None = None,
    **how: Any,
) -> RunResult:
    """Run the chain in ``file``; ``how`` as for ``plan_chain``, otherwise as ``task``."""
    work = plan_chain(
        load_chain(file), settings, options or PlanOptions(), run=new_run_id(), task=task, **how
    )
    return await _conduct(work, settings, folder, watcher)


async def _conduct(work: Work, settings: Settings, folder: Path | None, watcher: Watcher | None) -> RunResult:
    return await conduct(work.plan, settings, output=folder, watcher=watcher, work=work.carry_out)
