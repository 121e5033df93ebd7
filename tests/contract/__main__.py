"""Record what the outside sees anew, from the present code.

    python -m tests.contract              all but the export and the backup, which stay as older code wrote them
    python -m tests.contract --files      these, too
    python -m tests.contract -k recall    what has `recall` in the name of its test; as pytest takes it

Read the difference (`git diff tests/contract`) before you commit it, and write into CHANGELOG.md what it means for
those who call.
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
RECORDERS = ("test_interface.py", "test_scenes.py", "test_kept_files.py")


def main() -> int:
    """Run the same tests with a plugin that lets them write what they would compare; return the exit status."""
    recorders = [str(FOLDER / name) for name in RECORDERS]
    options = ["-p", "tests.contract.recording", "-p", "no:randomly", "-q", *sys.argv[1:]]
    command = [sys.executable, "-m", "pytest", *recorders, *options]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
