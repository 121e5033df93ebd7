"""How each embedding model's cosines map to the reference scale (B8a), one JSON file a model."""

import json
import re
from functools import lru_cache
from pathlib import Path

from memory.domain.calibration import Profile, identity_profile

FOLDER = Path(__file__).parent


@lru_cache(maxsize=16)
def load_profile(*, model: str, folder: Path = FOLDER) -> Profile:
    """Return the profile that ships for a model; an unknown model runs uncalibrated, and its profile says so."""
    path = profile_path(model=model, folder=folder)
    if not path.exists():
        return identity_profile(model=model)
    return Profile.from_dict(json.loads(path.read_text()))


def store_profile(*, profile: Profile, folder: Path = FOLDER) -> Path:
    """Write a fitted profile to its file, and return the file."""
    path = profile_path(model=profile.model, folder=folder)
    path.write_text(json.dumps(profile.to_dict(), indent=2) + "\n")
    load_profile.cache_clear()
    return path


def profile_path(*, model: str, folder: Path = FOLDER) -> Path:
    """Name the file of a model's profile; slashes and colons of model names become hyphens."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', model)}.json"
