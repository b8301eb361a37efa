"""The newcomer's walk, timed: from a clone to an upgrade under load, with what the documentation says to type.

    python load-tests/walk.py --binary target/release/stint             the walk with a binary that is there
    python load-tests/walk.py --clone .                                 clones and builds first
    python load-tests/walk.py --binary BINARY --seconds 1               what the tests run

With --pictures FOLDER it looks at the page after each step that changes it, and keeps what it sees. Each step fails where it does not do what it says. Prometheus is `make test-tools`' own; the upgrade needs PostgreSQL.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from browser import Browser

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.append(str(HERE / "fairness"))

from gateway import free_port  # of load-tests/fairness

# What the page is looked at for after a step: a name, the panel, and words that it then has.
PICTURES = {
    "the first answer": ("walk-1-first-answer", "now", "reasoner"),
    "a key with a monthly budget": ("walk-2-budget", "money", "alice"),
    "reload": ("walk-3-second-model", "now", "second"),
    "an alert fires": ("walk-4-refused", "now", "refused"),
    "the dashboard shows it": ("walk-5-decisions", "decisions", "second"),
}

# How long anything may take that is waited for.
PATIENCE = 60

ADMIN = """
[admin]
listen = "127.0.0.1:{port}"
token_file = "{file}"
"""

KEYS = """
[[key]]
name = "alice"
hash = "{alice}"
limits = [{{ money = "20", per = "month" }}]

[[key]]
name = "watcher"
hash = "{watcher}"
role = "read"
"""

SECOND_MODEL = """
[[backend]]
base_url = "http://127.0.0.1:{port}/v1"

[[backend.model]]
name = "second"
price_input = "0.10"
price_output = "0.40"
"""

PROMETHEUS = """\
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [{rules}]
scrape_configs:
  - job_name: stint
    authorization: {{ credentials: {key} }}
    static_configs: [{{ targets: ["127.0.0.1:{port}"] }}]
"""


class Eyes:
    """The page as an operator sees it, kept as pictures."""

    def __init__(self, page, token, folder, running):
        self.folder, self.browser = folder, Browser()
        running.callback(self.browser.close)
        self.browser.go(page)
        self.browser.type("#token", token)
        self.browser.press(".login button")
        self.browser.until("!document.getElementById('top').hidden")

    def look(self, name, panel, words):
        """That panel, once it has these words."""
        self.browser.press(f'#panels a[href="#{panel}"]')
        self.browser.until_shown(words)
        # Two looks of the page at its server, so that its lines begin.
        time.sleep(5)
        self.browser.picture(self.folder / f"{name}.png")


def until(what, is_so):
    """What it gives, once it gives something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := is_so():
            return found
        time.sleep(0.1)
    raise SystemExit(f"{what}: not within {PATIENCE} s")


def fetch(url, key="", body=None):
    """The status and the text of an answer; 0 where nobody answers."""
    request = urllib.request.Request(url, data=body and json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    request.add_header("authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Walk:
    """A folder of its own, a gateway in it, and how long each step took."""

    def __init__(self, binary, folder, running, pictures):
        self.binary, self.folder, self.running, self.port = binary, Path(folder), running, free_port()
        self.pictures, self.eyes = pictures and Path(pictures), None
        self.config, self.log = self.folder / "stint.toml", self.folder / "stint.log"
        self.environment = {**os.environ, "STINT_CONFIG": str(self.config), "XDG_DATA_HOME": folder,
                            "XDG_RUNTIME_DIR": folder, "STINT_LISTEN": f"127.0.0.1:{self.port}"}
        self.base, self.steps, self.process = f"http://127.0.0.1:{self.port}", [], None

    def step(self, name, work):
        began = time.monotonic()
        told = work()
        self.steps.append((name, time.monotonic() - began))
        self.seen(name)
        print(f"{self.steps[-1][1]:7.2f} s  {name}{f': {told}' if told else ''}", flush=True)

    def seen(self, step):
        """A picture of what the step changed, where pictures are wanted and the page shows it."""
        if self.pictures and step in PICTURES:
            if not self.eyes:
                self.pictures.mkdir(parents=True, exist_ok=True)
                self.eyes = Eyes(f"http://127.0.0.1:{self.admin_port}/", self.admin_token, self.pictures, self.running)
            self.eyes.look(*PICTURES[step])

    def stint(self, *verb):
        done = subprocess.run([self.binary, *verb], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"stint {' '.join(verb)}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self):
        self.process = subprocess.Popen([self.binary, "serve"], env=self.environment, stderr=open(self.log, "a"))
        self.running.callback(self.process.kill)
        until("the gateway is ready", lambda: fetch(f"{self.base}/readyz")[0] == 200)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(PATIENCE) != 0:
            raise SystemExit(f"the gateway ended badly: {self.log.read_text()[-500:]}")

    def ask(self, model, key=""):
        body = {"model": model, "messages": [{"role": "user", "content": "What is 12+34*2?"}]}
        status, text = fetch(f"{self.base}/v1/chat/completions", key, body)
        if status != 200:
            raise SystemExit(f"{model}: {status} {text}")
        return json.loads(text)

    def new_key(self):
        """A key, and its hash."""
        told = self.stint("keys", "new")
        return re.search(r"sk-\S+", told).group(), re.search(r"sha256:[0-9a-f]+", told).group()

    def first_answer(self):
        self.admin_port, (self.admin_token, _) = free_port(), self.new_key()
        token = self.folder / "admin.token"
        token.write_text(self.admin_token)
        self.good = ADMIN.format(port=self.admin_port, file=token)
        self.config.write_text(self.good)
        self.start()
        said = self.ask("auto")["choices"][0]["message"]["content"]
        if said != "80":
            raise SystemExit(f"12+34*2 is {said}")
        return "12+34*2 is 80"

    def key(self):
        """Two: one for a person with a monthly budget, one that reads the metrics."""
        (self.alice, alice), (self.watcher, watcher) = self.new_key(), self.new_key()
        self.good += KEYS.format(alice=alice, watcher=watcher)
        self.config.write_text(self.good)
        self.process.send_signal(signal.SIGHUP)
        until("everybody needs a key", lambda: fetch(f"{self.base}/v1/models")[0] == 401)
        self.ask("auto", self.alice)
        line = json.loads(fetch(f"{self.base}/v1/allowance", self.alice)[1])["limits"][0]
        return f"{line['left']} of {line['max']} dollars are left until {line['resets_at']}"

    def second_model(self):
        port = free_port()
        upstream = subprocess.Popen([sys.executable, str(HERE / "upgrade" / "upstream.py"), str(port)])
        self.running.callback(upstream.kill)
        self.good += SECOND_MODEL.format(port=port)
        self.config.write_text(self.good)
        self.stint("check")

    def reload(self):
        self.process.send_signal(signal.SIGHUP)
        until("the second model", lambda: '"second"' in fetch(f"{self.base}/v1/models", self.alice)[1])
        cost = self.ask("second", self.alice)["budget"]["cost_usd"]
        return f"an answer of the second model cost {cost} dollars"

    def watch(self):
        self.prometheus = f"http://127.0.0.1:{free_port()}"
        rules = json.dumps(str(ROOT / "deploy/prometheus/alerts.yml"))
        settings = self.folder / "prometheus.yml"
        settings.write_text(PROMETHEUS.format(rules=rules, key=self.watcher, port=self.port))
        address = self.prometheus.removeprefix("http://")
        command = [str(ROOT / ".cache/prometheus"), f"--config.file={settings}", f"--web.listen-address={address}",
                   f"--storage.tsdb.path={self.folder / 'series'}"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.running.callback(child.kill)
        until("Prometheus reads the metrics", lambda: self.query('up{job="stint"} == 1'))

    def query(self, expression):
        asked = urllib.parse.urlencode({"query": expression})
        status, text = fetch(f"{self.prometheus}/api/v1/query?{asked}")
        return json.loads(text)["data"]["result"] if status == 200 else []

    def alert(self):
        self.config.write_text(self.good + "\n[server]\nlisten = 'nowhere'\n")
        self.process.send_signal(signal.SIGHUP)
        firing = 'ALERTS{alertname="StintConfigRefused", alertstate="firing"}'
        until("the alert", lambda: self.query(firing))
        self.ask("second", self.alice)
        return "StintConfigRefused fires, and the configuration before still serves"

    def dashboard(self):
        """The panel of that series, by the query that the dashboard's file has."""
        panels = json.loads((ROOT / "deploy/grafana/stint.json").read_text())["panels"]
        targets = [target["expr"] for panel in panels for target in panel.get("targets", [])]
        query = next(one for one in targets if one.startswith("stint_config_state"))
        shown = self.query(query.replace("$instance", ".+"))
        if [one["value"][1] for one in shown] != ["0"]:
            raise SystemExit(f"the dashboard shows {shown}")
        self.config.write_text(self.good)
        self.process.send_signal(signal.SIGHUP)
        until("the configuration is taken", lambda: self.query("stint_config_state == 1"))
        return "its panel showed 0, and shows 1 again"

    def usage(self):
        return json.loads(fetch(f"{self.base}/v1/usage", self.alice)[1])["data"]

    def restore(self):
        copy = str(self.folder / "copy.db")
        self.stint("ledger", "backup", copy)
        before = self.usage()
        self.ask("second", self.alice)
        self.stop()
        for file in (self.folder / "stint").glob("ledger.db*"):
            file.unlink()
        self.stint("ledger", "restore", copy)
        verified = self.stint("ledger", "verify").strip().splitlines()[-1]
        self.start()
        if (after := self.usage()) != before:
            raise SystemExit(f"the books were {before} at the backup and are {after}")
        self.stop()
        return verified

    def upgrade(self, old, seconds):
        command = [sys.executable, str(HERE / "upgrade"), "--old", old, "--new", self.binary, "--seconds", str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"the upgrade: {done.stdout}{done.stderr}")
        report = json.loads(done.stdout)
        return f"{report['old']} and {report['new']} answers by the two versions, none lost, verify right"


def clone(source, folder):
    """The binary of a clone."""
    tree = str(Path(folder) / "clone")
    subprocess.run(["git", "clone", "--quiet", source, tree], check=True)
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=tree, check=True)
    return str(Path(tree) / "target/release/stint")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", help="the binary to walk with")
    parser.add_argument("--clone", metavar="REPOSITORY", help="clones and builds this one first")
    parser.add_argument("--old", help="the binary that is upgraded from; the same one without it")
    parser.add_argument("--pictures", metavar="FOLDER", help="keeps there what the page shows after each step")
    parser.add_argument("--seconds", type=float, default=5, help="how long each of three parts of the upgrade takes")
    wanted = parser.parse_args()
    if bool(wanted.binary) == bool(wanted.clone):
        parser.error("name a binary, or a repository to clone")
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory())
        binary = str(Path(wanted.binary).resolve()) if wanted.binary else None
        walk = Walk(binary, folder, running, wanted.pictures)
        if wanted.clone:
            def build():
                walk.binary = clone(wanted.clone, folder)

            walk.step("clone and build", build)
        walk.step("the first answer", walk.first_answer)
        walk.step("a key with a monthly budget", walk.key)
        walk.step("a second model, checked", walk.second_model)
        walk.step("reload", walk.reload)
        walk.step("Prometheus reads the metrics", walk.watch)
        walk.step("an alert fires", walk.alert)
        walk.step("the dashboard shows it", walk.dashboard)
        walk.step("a backup is restored", walk.restore)
        walk.step("an upgrade under load", lambda: walk.upgrade(wanted.old or walk.binary, wanted.seconds))
        print(f"{sum(seconds for _, seconds in walk.steps):7.2f} s  altogether")


if __name__ == "__main__":
    main()
