"""Which account runs a server when we are root, and how to change to it."""

import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from beliefsite.embedded.errors import EmbeddedServiceError

CAP_DAC_READ_SEARCH = 2  # bit numbers of capabilities(7)
CAP_SETPCAP = 8


class AccountError(EmbeddedServiceError):
    """There is no way to run a server as an unprivileged account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user and group by number."""

    uid: int
    gid: int


def owner_of(path: Path) -> Account | None:
    """Return the account a path belongs to, None if it is missing or root's."""
    if not path.exists():
        return None
    facts = path.stat()
    return Account(uid=facts.st_uid, gid=facts.st_gid) if facts.st_uid else None


def unprivileged() -> Account:
    """Return the account PostgreSQL runs as where we are root: initdb wants one that has a name."""
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    raise AccountError("root cannot run PostgreSQL, and this machine has neither a user postgres nor nobody")


def change_to(account: Account, *, binary: Path) -> list[str]:
    """Return the words that, before a command, run it as the account but let it pass folders only root may enter."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise AccountError("root needs setpriv (util-linux) to run a server unprivileged; or run as an ordinary user")
    held = _effective_capabilities()
    passing = _passing_capability(held, binary)
    # access(2), by which PostgreSQL finds its programs, heeds capabilities only with this bit. It gives none: they
    # are what is left after the exec, the one above.
    access = ["--securebits=+no_setuid_fixup"] if _has(held, CAP_SETPCAP) else []
    identity = [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"]
    rights = [f"--inh-caps=-all,+{passing}", f"--ambient-caps=+{passing}", "--no-new-privs", *access]
    return [setpriv, *identity, *rights, "--"]


def _passing_capability(held: int, binary: Path) -> str:
    """Prefer the right to read and pass; containers often have only the wider one, and it alone runs a 0700 binary."""
    is_enough = _has(held, CAP_DAC_READ_SEARCH) and binary.stat().st_mode & stat.S_IXOTH
    return "dac_read_search" if is_enough else "dac_override"


def _effective_capabilities() -> int:
    """Return the capabilities of this process, as Linux's bit mask; setpriv exists nowhere else."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))


def _has(held: int, capability: int) -> bool:
    return bool(held >> capability & 1)
