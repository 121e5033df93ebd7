"""Erase memories, a user's memories or a workspace's (B19)."""

import getpass
import json
import sys
from collections import defaultdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from memory.access import find_workspace
from memory.domain.identity import Actor, ActorKind
from memory.erasure.anonymize import StillSeen, rewrite_tables, tables_to_rewrite
from memory.erasure.erase import Erasure, erase_memories, erase_user, erase_workspace
from memory.management.command_line import ServiceCommand, named_memory, pluralize, usage_error
from memory.models import Belief, Episode, Workspace
from memory.redaction.service import redact_name

WAIT_SECONDS = 60.0


class Command(ServiceCommand):
    help = (
        "Erase memories for good: their text, vectors, history, and all that models said about them. Beliefs that may "
        "quote an episode go with it; what else they were made of is consolidated anew. Name ids, or a workspace and "
        "one of its users, or a workspace and --all."
    )

    def add_arguments(self, parser: CommandParser) -> None:
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
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, ids: list[str], scrub: bool, wait: float, as_json: bool, **options: Any) -> None:
        _check_usage(ids, options, scrub=scrub)
        done = _erase(ids, **options)  # one for each workspace
        if scrub:
            _scrub(wait, show=not as_json)
        self._show(done, is_scrubbed=scrub, as_json=as_json)

    def _show(self, erasures: list[Erasure], *, is_scrubbed: bool, as_json: bool) -> None:
        none = Erasure(episodes=0, beliefs=0, calls=0).counts
        done = {name: sum(one.counts[name] for one in erasures) for name in none}
        if as_json:
            self.stdout.write(json.dumps({**done, "belief_ids": _ids(erasures), "scrubbed": is_scrubbed}))
            return
        if any(done.values()) or not is_scrubbed:
            self.stdout.write(_in_words(done))
        if is_scrubbed:
            self.stdout.write(f"{pluralize(len(tables_to_rewrite()), 'table')} written anew.")


def _check_usage(ids: list[str], options: dict[str, Any], *, scrub: bool) -> None:
    workspace, names_some = options["workspace"], options["user"] is not None or options["is_all"]
    if ids and (workspace or names_some):
        raise usage_error("Name ids, or a workspace, not both.")
    if bool(workspace) != names_some:
        raise usage_error("--workspace goes with --user or --all, and those with --workspace.")
    if options["user"] == "":
        raise usage_error("--user: what belongs to nobody in particular is not one user's.")
    if not (ids or workspace or scrub):
        raise usage_error("Name what is to be erased.")


def _erase(ids: list[str], *, workspace: str | None, user: str | None, is_all: bool, **_: Any) -> list[Erasure]:
    actor = Actor(kind=ActorKind.COMMAND, name=f"erase of {getpass.getuser()}")
    if workspace is None:
        return _erase_named(ids, actor)
    place = find_workspace(name=workspace)
    if is_all:
        return [erase_workspace(workspace=place, actor=actor)]
    name = redact_name(user or "").text
    return [erase_user(workspace=place, user=name, actor=actor, now=timezone.now())]


def _erase_named(ids: list[str], actor: Actor) -> list[Erasure]:
    by_workspace: dict[int, list[Episode | Belief]] = defaultdict(list)
    for memory in [named_memory(text) for text in ids]:
        by_workspace[memory.workspace_id].append(memory)
    return [
        erase_memories(
            workspace=Workspace.objects.get(pk=workspace_id),
            episodes=Episode.objects.filter(pk__in=[one.pk for one in memories if isinstance(one, Episode)]),
            beliefs=[one.pk for one in memories if isinstance(one, Belief)],
            actor=actor,
            now=timezone.now(),
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


def _scrub(wait_seconds: float, *, show: bool) -> None:
    tables, is_quiet = rewrite_tables(wait_seconds=wait_seconds), not (show and sys.stderr.isatty())
    try:
        for _ in tqdm(tables, total=len(tables_to_rewrite()), unit="table", disable=is_quiet):
            pass
    except StillSeen as error:
        message = f"{error} All is erased, and no file is scrubbed: see to its end, then `erase --scrub` again."
        raise CommandError(message, returncode=1) from None


def _in_words(done: dict[str, int]) -> str:
    told = [f"{pluralize(done['episodes'], 'episode')} and {pluralize(done['beliefs'], 'belief')} erased"]
    told += [pluralize(done["turns"], "turn") + " of conversations"] if done["turns"] else []
    told += [f"what {pluralize(done['calls'], 'call')} of models said"] if done["calls"] else []
    told += [f"{pluralize(done['released'], 'episode')} to be consolidated anew"] if done["released"] else []
    told += [f"{pluralize(done['recomputed'], 'belief')} computed anew"] if done["recomputed"] else []
    told += [f"{done['archived']} archived without support"] if done["archived"] else []
    return ", ".join(told) + "."
