"""Who asks in a scene: one caller for each kind of key."""

import secrets
from datetime import datetime

from memory.access import hash_key
from memory.models import ApiKey, Project, Workspace

WORKSPACE, PROJECT = "Mill Lane", "cottage"

# By name: the permissions of the key, whether it is limited to the one project.
KEYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "reader": (("read",), False),
    "writer": (("write",), False),
    "agent": (("read", "write"), False),
    "curator": (("curate",), False),
    "owner": (("owner",), False),
    "lodger": (("curate",), True),  # limited to the project
    "landlady": (("owner",), True),  # limited to it, too
    "lodging reader": (("read",), True),
    "revoked": (("owner",), False),
    "neighbour": (("owner",), False),  # of another workspace
}
# What no key goes with, by what is said instead.
WITHOUT_KEY: dict[str, dict[str, str]] = {
    "nobody": {},
    "forger": {"Authorization": "Bearer engram_this-key-was-never-made"},
    "clerk": {"Authorization": "Basic bWlsbGVyOmZsb3Vy"},
    "mumbler": {"Authorization": "Bearer"},
}


class Callers:
    """The workspace of a scene, and the keys to it: their beginnings are the same on every run, the rest is chance."""

    def __init__(self, *, now: datetime) -> None:
        self.workspace = Workspace.objects.create(name=WORKSPACE, created_at=now)
        next_door = Workspace.objects.create(name="Next Door", created_at=now)
        project = Project.objects.create(workspace=self.workspace, slug=PROJECT, created_at=now)
        self._texts: dict[str, str] = {}
        for name, (permissions, is_limited) in KEYS.items():
            text = self._texts[name] = f"engram_{name[:4]}-{secrets.token_urlsafe(32)}"
            key = ApiKey.objects.create(
                workspace=next_door if name == "neighbour" else self.workspace,
                name=name, prefix=text[:11], hash=hash_key(text), permissions=list(permissions), is_limited=is_limited,
                created_at=now, revoked_at=now if name == "revoked" else None,
            )  # fmt: skip
            key.projects.set([project] if is_limited else [])

    def headers_of(self, name: str) -> dict[str, str]:
        """Return what a caller says of themselves."""
        if name in WITHOUT_KEY:
            return WITHOUT_KEY[name]
        return {"Authorization": f"Bearer {self._texts[name]}"}
