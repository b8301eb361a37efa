"""The load itself: load-tests/loader, which is the upstream and the callers."""

import json
import subprocess
import tempfile
import tomllib
from pathlib import Path

from processes import LOAD_CORE, Process, on_core

SCENARIOS = Path("load-tests/scenarios/load")


def scenario(name):
    return SCENARIOS / f"{name}.toml"


def read(name):
    return tomllib.loads(scenario(name).read_text())


class Loader:
    """The binary, and where its files go."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, Path(folder)

    def upstream(self, name, port):
        command = [self.binary, "upstream", scenario(name), "--listen", f"127.0.0.1:{port}"]
        return Process(command, LOAD_CORE, port, self.folder / "upstream.log")

    def drive(self, name, port, *, pid=None, base="/v1", model="m", key="sk-load", seconds=None, warm_up=None, connections=None,
              per_second=None):
        """What came of it, as the loader reports it."""
        options = {"base": base, "model": model, "key": key, "seconds": seconds, "warm-up": warm_up, "connections": connections,
                   "per-second": per_second, "pid": pid}
        words = [word for option, value in options.items() if value is not None for word in (f"--{option}", value)]
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".json") as report:
            command = [self.binary, "drive", scenario(name), "--target", f"127.0.0.1:{port}", "--json", report.name, *words]
            done = subprocess.run(on_core(LOAD_CORE, *command), capture_output=True, text=True)
            text = Path(report.name).read_text()
            if not text:
                raise RuntimeError(done.stderr.strip() or f"the loader ended with {done.returncode}")
            return json.loads(text)
