"""Stint as it is measured: with everything on that a user gets, over each of its databases."""

from contextlib import contextmanager

from processes import GATEWAY_CORE, Process

from gateway import free_port  # of load-tests/fairness
from postgres import Postgres

# What the tables call them, and what `[ledger]` says.
DATABASES = {
    "memory": ("ledger in memory", ""),
    "normal": ("SQLite NORMAL", 'synchronous = "normal"\n'),
    "full": ("SQLite FULL", ""),
    "postgres": ("PostgreSQL", 'url_env = "LOAD_DATABASE"\n'),
}

MODEL = """\

[[backend.model]]
name = "{name}"
price_input = "{price_input}"
price_output = "{price_output}"
context = 1000000
{more}
"""


def settings(upstream, database, wanted, folder):
    """The whole configuration. `wanted` is the scenario's `[gateway]`."""
    kind = wanted.get("kind", "openai")
    base = f"http://127.0.0.1:{upstream}" + ("/v1" if kind == "openai" else "")
    more = wanted.get("model", "thinking_max = 0")
    count = wanted.get("models", 1)
    # Learning and the decision log are on, beside a ledger in memory too.
    text = f'[engine]\nembedded = false\n\n[ledger]\n{DATABASES[database][1]}\n[learn]\nlog_file = "{folder}/decisions.jsonl"\n\n'
    text += wanted.get("settings", "")
    text += f'\n[[backend]]\nname = "upstream"\nkind = "{kind}"\nbase_url = "{base}"\n'
    if kind == "anthropic" or kind == "deepseek":
        text += 'api_key_env = "LOAD_UPSTREAM_KEY"\n'
    for at in range(count):
        name = "m" if count == 1 else f"m{at}"
        prices = {"price_input": f"{0.05 * (at + 1):.2f}", "price_output": f"{0.2 * (at + 1):.2f}"}
        text += MODEL.format(name=name, more=more, **prices)
    return text


class Databases:
    """Makes ledgers for gateways; a PostgreSQL is started when the first gateway needs it."""

    def __init__(self, running):
        self.running, self.postgres = running, None

    def environment(self, database, folder):
        if database == "postgres":
            if not self.postgres:
                self.postgres = Postgres()
                self.running.callback(self.postgres.stop)
            return {"LOAD_DATABASE": self.postgres.database()}
        return {"STINT_LEDGER": ":memory:" if database == "memory" else f"{folder}/ledger.db"}


@contextmanager
def stint(binary, folder, database, databases, upstream, wanted=None):
    """A running gateway over that database."""
    folder.mkdir(parents=True)
    (folder / "stint.toml").write_text(settings(upstream, database, wanted or {}, folder))
    port = free_port()
    environment = {**databases.environment(database, folder), "STINT_LISTEN": f"127.0.0.1:{port}",
                   "STINT_LOG": "info", "LOAD_UPSTREAM_KEY": "sk-upstream"}
    command = [binary, "serve", "--config", folder / "stint.toml"]
    with Process(command, GATEWAY_CORE, port, folder / "log", environment) as process:
        yield process
