"""Allocations, as the test beside counts them: in the profile for tests, since optimisation leaves nearly all where they are."""

import json
import subprocess
from pathlib import Path

# Of the whole workspace, so that what `make test` has built is not built again.
COMMAND = ["cargo", "test", "--workspace", "--locked", "--test", "allocations", "--", "--ignored", "--quiet"]
FILE = Path("target/tmp/allocations.json")


def measure(_options):
    FILE.unlink(missing_ok=True)
    done = subprocess.run(COMMAND, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.stdout)
    counts = json.loads(FILE.read_text())
    return {f"allocations.{name}": {member: counts[name][member] for member in ("count", "bytes")} for name in counts}
