"""Erase memories, a user's memories or a workspace's (B19)."""

import sys
from collections import defaultdict
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from memory.access import find_workspace
from memory.domain.identity import Actor
from memory.erasure.anonymize import StillSeen, rewrite_tables, tables_to_rewrite
from memory.erasure.erase import Erasure, erase_memories, erase_user, erase_workspace
from memory.management.command_line import (
    Report,
    ReportCommand,
    command_actor,
    fail_on,
    named_memory,
    named_user,
    pluralize,
    usage_error,
)
from memory.models import Belief, Episode, Workspace

WAIT_SECONDS = 60.0


class Command(ReportCommand):
    help = (
        "Erase memories for good: their text, vectors, history, and all that models said about them. Beliefs that may "
        "quote an episode go with it; what else they were made of is consolidated anew. Name ids, or a workspace and "
        "one of its users, or a workspace and --all."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID", help="ep_… or bl_…, or the beginning of one")
        parser.add_argument("--workspace")
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument("--user", help="of the workspace: all that is theirs")
        whose.add_argument("--all", action="store_true", dest="is_all", help="every memory of the workspace")
        parser.add_argument(
            "--scrub",
            action="store_true",
            help="afterwards, write every table anew, so that no file of the database holds what was erased; locks one "
            "table after the other, and needs room for a copy of the greatest",
        )
        parser.add_argument(
            "--wait",
            type=float,
            default=WAIT_SECONDS,
            help="seconds for which --scrub waits for the end of transactions that still see what was erased",
        )

    def run(self, *, ids: list[str], scrub: bool, wait: float, as_json: bool, now: datetime, **options: Any) -> Report:
        _check_usage(ids, options, scrub=scrub)
        erasures = _erase(ids, now=now, **options)  # one for each workspace
        if scrub:
            _scrub(wait, show=not as_json)
        none = Erasure(episodes=0, beliefs=0, calls=0).counts
        done = {name: sum(one.counts[name] for one in erasures) for name in none}
        lines = [_in_words(done)] if any(done.values()) or not scrub else []
        lines += [f"{pluralize(len(tables_to_rewrite()), 'table')} written anew."] if scrub else []
        return Report(values={**done, "belief_ids": _ids(erasures), "scrubbed": scrub}, lines=lines)


def _check_usage(ids: list[str], options: dict[str, Any], *, scrub: bool) -> None:
    workspace, names_some = options["workspace"], options["user"] is not None or options["is_all"]
    if ids and (workspace or names_some):
        raise usage_error("Name ids, or a workspace, not both.")
    if bool(workspace) != names_some:
        raise usage_error("--workspace goes with --user or --all, and those with --workspace.")
    named_user(options["user"])
    if not (ids or workspace or scrub):
        raise usage_error("Name what is to be erased.")


def _erase(
    ids: list[str], *, workspace: str | None, user: str | None, is_all: bool, now: datetime, **_: Any
) -> list[Erasure]:
    actor = command_actor("erase")
    if workspace is None:
        return _erase_named(ids, actor, now)
    place = find_workspace(name=workspace)
    if is_all:
        return [erase_workspace(workspace=place, actor=actor)]
    return [erase_user(workspace=place, user=named_user(user) or "", actor=actor, now=now)]


def _erase_named(ids: list[str], actor: Actor, now: datetime) -> list[Erasure]:
    by_workspace: dict[int, list[Episode | Belief]] = defaultdict(list)
    for memory in [named_memory(text) for text in ids]:
        by_workspace[memory.workspace_id].append(memory)
    return [
        erase_memories(
            workspace=Workspace.objects.get(pk=workspace_id),
            episodes=Episode.objects.filter(pk__in=[one.pk for one in memories if isinstance(one, Episode)]),
            beliefs=[one.pk for one in memories if isinstance(one, Belief)],
            actor=actor,
            now=now,
        )
        for workspace_id, memories in sorted(by_workspace.items())
    ]


def _ids(erasures: list[Erasure]) -> dict[str, list[str]]:
    """Name the beliefs that the numbers are about; of a workspace that was erased as a whole, none."""
    return {
        "recomputed": sorted(key for one in erasures for key in one.ids.recomputed),
        "archived": sorted(key for one in erasures for key in one.ids.archived),
        "erased": sorted(key for one in erasures for key in one.ids.erased),
    }


_STILL_SEEN = " All is erased, and no file is scrubbed: see to its end, then `erase --scrub` again."


def _scrub(wait_seconds: float, *, show: bool) -> None:
    tables, is_quiet = rewrite_tables(wait_seconds=wait_seconds), not (show and sys.stderr.isatty())
    with fail_on(StillSeen, then=_STILL_SEEN):
        for _ in tqdm(tables, total=len(tables_to_rewrite()), unit="table", disable=is_quiet):
            pass


def _in_words(done: dict[str, int]) -> str:
    told = [f"{pluralize(done['episodes'], 'episode')} and {pluralize(done['beliefs'], 'belief')} erased"]
    told += [pluralize(done["turns"], "turn") + " of conversations"] if done["turns"] else []
    told += [f"what {pluralize(done['calls'], 'call')} of models said"] if done["calls"] else []
    told += [f"{pluralize(done['released'], 'episode')} to be consolidated anew"] if done["released"] else []
    told += [f"{pluralize(done['recomputed'], 'belief')} computed anew"] if done["recomputed"] else []
    told += [f"{done['archived']} archived without support"] if done["archived"] else []
    return ", ".join(told) + "."
