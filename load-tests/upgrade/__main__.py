"""Replaces a gateway of one version by one of another, beside each other on one PostgreSQL, while callers go on asking.

    python load-tests/upgrade --old BINARY --new BINARY

What must hold: each request is answered, whole; what the answers say that they cost is what the books have, and the new version finds them
right; the old one's answers that ran when it was told to stop came to their end. Where the tables are newer than the old version knows, it
says so.
"""

import argparse
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fairness"))

from callers import KEY, Answer, Callers, Rotation
from gateway import free_port  # of load-tests/fairness
from postgres import Postgres

# What a version says of tables that a newer one has made.
NEWER = "was written by a newer stint"

# From when a balancer knows that a gateway leaves until that one is stopped: who was sent there meanwhile has arrived.
GRACE = 0.5

SETTINGS = """\
[engine]
embedded = false

[server]
drain = "30s"

[ledger]
url_env = "UPGRADE_DATABASE"

[[backend]]
base_url = "http://127.0.0.1:{upstream}/v1"

[[backend.model]]
name = "m"
price_input = "0.10"
price_output = "0.40"
thinking_max = 0
stops_billing = true

[[key]]
name = "caller"
hash = "sha256:{hash}"
limits = [{{ money = "1000", per = "day" }}]
"""


class Version:
    """A binary, and a gateway of it."""

    def __init__(self, name, binary, folder, database):
        self.name, self.binary, self.folder, self.port, self.process = name, binary, folder, free_port(), None
        self.environment = {**os.environ, "UPGRADE_DATABASE": database, "STINT_LISTEN": f"127.0.0.1:{self.port}",
                            "STINT_CONFIG": str(folder / "stint.toml"), "STINT_LOG": "warn"}

    def start(self):
        log = open(self.folder / f"{self.name}.log", "w")
        self.process = subprocess.Popen([self.binary, "serve"], env=self.environment, stdout=log, stderr=log)
        for _ in range(600):
            if self.process.poll() is not None:
                break
            if self.run("health").returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"the {self.name} version does not start: {self.log()}")

    def stop(self):
        """Tells it to finish what runs, and waits until it has. Its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)

    def run(self, *verb):
        return subprocess.run([self.binary, *verb], env=self.environment, capture_output=True, text=True)

    def log(self):
        return (self.folder / f"{self.name}.log").read_text().strip()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()


def books(version):
    """How many requests the books have as settled, and what they cost together."""
    exported = version.run("ledger", "export")
    rows = list(csv.DictReader(io.StringIO(exported.stdout)))
    settled = [row for row in rows if row["how"] in ("settled", "part")]
    cost = sum((Decimal(row["spent_usd"]) for row in settled), Decimal(0))
    return sum(row["how"] == "settled" for row in settled), cost, [row["how"] for row in rows]


def replace(old, new, callers, rotation, seconds):
    """The upgrade itself. The exit status of the old version."""
    time.sleep(seconds)
    new.start()
    rotation.add(new.port)
    time.sleep(seconds)
    # Both serve. The old one is taken out of the rotation first, as a load balancer does that asks /readyz; what it has begun it ends.
    rotation.remove(old.port)
    time.sleep(GRACE)
    status = old.stop()
    time.sleep(seconds)
    callers.stop()
    return status


def repeat(old, new):
    """A request that the old version answered is answered again by the new one, with the same id and nothing charged."""
    body = {"model": "m", "messages": [{"role": "user", "content": "once"}], "max_completion_tokens": 100}
    header = [("idempotency-key", "across-versions")]
    first = Answer(old.port, body, header)
    return first, lambda: Answer(new.port, body, header)


def judge(old, new, callers, first, again, status):
    """Every promise that was broken, in words; what the answers cost; and whether the old version refuses the new tables."""
    answers = [first, *callers.answers]
    wrong = [f"{number} × {fault}" for fault, number in callers.faults().items()]
    if status != 0:
        wrong.append(f"the old version ended with {status}: {old.log()[-300:]}")
    if again.fault or again.id != first.id or again.headers.get("idempotent-replayed") != "true":
        wrong.append(f"the request with an idempotency key was not answered again: {again.fault or again.id}")
    settled, cost, ways = books(new)
    stated = sum((answer.cost for answer in answers), Decimal(0))
    if settled != len(answers) or cost != stated:
        wrong.append(f"{len(answers)} answers cost {stated}, and the books have {settled} that cost {cost}")
    if strange := sorted(set(ways) - {"settled", "part", "voided"}):
        wrong.append(f"the books have entries that are {', '.join(strange)}")
    verified = new.run("ledger", "verify")
    if verified.returncode != 0:
        wrong.append(f"verify finds: {verified.stdout}{verified.stderr}")
    refused = old.run("ledger", "verify")
    if refused.returncode != 0 and NEWER not in refused.stderr:
        wrong.append(f"the old version says of the new tables: {refused.stdout}{refused.stderr}")
    for version in (old, new):
        if version.port not in callers.by_port():
            wrong.append(f"nobody asked the {version.name} version")
        if "panicked" in version.log():
            wrong.append(f"the {version.name} version panicked: {version.log()[-300:]}")
    return wrong, stated, refused.returncode != 0


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", required=True, help="the binary that serves first")
    parser.add_argument("--new", required=True, help="the binary that takes its place")
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5, help="how long each of three parts takes")
    return parser.parse_args()


def main():
    wanted = read_arguments()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        postgres = Postgres()
        running.callback(postgres.stop)
        upstream = free_port()
        command = [sys.executable, str(Path(__file__).parent / "upstream.py"), str(upstream)]
        scripted = subprocess.Popen(command)
        running.callback(scripted.kill)
        (folder / "stint.toml").write_text(SETTINGS.format(upstream=upstream, hash=sha256(KEY.encode()).hexdigest()))
        database = postgres.database()
        old, new = (Version(name, binary, folder, database) for name, binary in (("old", wanted.old), ("new", wanted.new)))
        for version in (old, new):
            running.callback(version.kill)
        old.start()
        rotation = Rotation()
        rotation.add(old.port)
        first, again = repeat(old, new)
        callers = Callers(rotation, wanted.callers)
        running.callback(callers.stopping.set)
        status = replace(old, new, callers, rotation, wanted.seconds)
        wrong, cost, refuses = judge(old, new, callers, first, again(), status)
        new.stop()
    by_port = callers.by_port()
    report = {"old": by_port[old.port], "new": by_port[new.port], "cost_usd": str(cost), "old_refuses_new_tables": refuses,
              "wrong": wrong}
    print(json.dumps(report, indent=2))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
