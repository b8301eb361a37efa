"""Processes of a measurement: each on the core that is meant for it, and gone when it is over."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fairness"))

# The load and the upstream share a core, so that what a gateway takes is not taken from it.
LOAD_CORE, GATEWAY_CORE = (0, 1) if (os.cpu_count() or 1) > 1 else (0, 0)


def on_core(core, *command):
    return ["taskset", "-c", str(core), *map(str, command)]


class Process:
    """Starts a command, and waits until its port answers."""

    def __init__(self, command, core, port, log, environment=None, patience=60):
        self.log = log
        with open(log, "w") as out:
            self.process = subprocess.Popen(on_core(core, *command), env={**os.environ, **(environment or {})},
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.port, self.began = port, time.monotonic()
        try:
            self.wait(patience)
        except BaseException:
            self.stop()
            raise

    def wait(self, patience):
        while time.monotonic() - self.began < patience:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    self.ready_after = time.monotonic() - self.began
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        lines = Path(self.log).read_text(errors="replace").strip().splitlines() or ["no word"]
        raise RuntimeError(f"it does not start: {lines[-1][:200]}")

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
