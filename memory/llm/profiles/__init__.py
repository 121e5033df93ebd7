"""How each embedding model's cosines map to the reference scale (B8a), one JSON file a model."""

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from memory.domain.similarity import Profile, identity_profile

FOLDER = Path(__file__).parent


def load_profile(*, model: str) -> Profile:
    """Return the profile that ships for a model; an unknown model runs uncalibrated, and its profile says so.

    A folder's model is known by the hash of its weights, whatever the folder is called.
    """
    path = profile_path(model=model)
    if not path.exists() and (weights := _weights_of(model)):
        path = next(iter(sorted(FOLDER.glob(f"*@{weights}*.json"))), path)
    return _read_profile(model, path)


def _weights_of(model: str) -> str:
    """Return the hash in `name@hash-use`, else nothing."""
    return model.rpartition("@")[2].partition("-")[0] if "@" in model else ""


@lru_cache(maxsize=16)
def _read_profile(model: str, path: Path) -> Profile:
    if not path.exists():
        return identity_profile(model=model)
    return replace(Profile.from_dict(json.loads(path.read_text())), model=model)


def store_profile(*, profile: Profile) -> Path:
    """Write a fitted profile to its file, and return the file."""
    path = profile_path(model=profile.model)
    path.write_text(json.dumps(profile.to_dict(), indent=2) + "\n")
    _read_profile.cache_clear()
    return path


def profile_path(*, model: str) -> Path:
    """Name the file of a model's profile; slashes and colons of model names become hyphens."""
    return FOLDER / f"{re.sub(r'[^A-Za-z0-9._@-]+', '-', model)}.json"
