"""Every scenario through Stint over each of its databases, and straight to the upstream for what is to be taken off."""

from contextlib import ExitStack

from loader import read
from stints import DATABASES, Databases, stint

from gateway import free_port  # of load-tests/fairness

# In the order of the table. What is not here is another's: "plain" at half of its own rate comes with "plain".
ALL = ["plain", "stream-53", "stream-2000", "prompt-100k", "streams-1000", "thoughts", "tools", "auto", "messages", "capacity", "overload",
       "hang-ups", "stalled-callers", "stalling-upstream"]
MATRIX = [f"matrix-{api}{streamed}" for api in ("chat", "responses", "messages") for streamed in ("", "-stream")]
SOAK = "soak"
# They say nothing about a database, or take ten minutes.
OVER_ONE = {*MATRIX, SOAK, "messages"}
# A gateway's own dialect of the upstream; callers of the loader do not speak it.
NEVER_DIRECT = {"thoughts", "auto", *MATRIX}


def usual(databases):
    """The one that users have who say nothing, where it is among them."""
    return "full" if "full" in databases else databases[-1]


def half(report):
    return report["per_second"] / 2


class Measurement:
    def __init__(self, loader, options, folder):
        self.loader, self.options, self.folder, self.count = loader, options, folder, 0

    def run(self, names, databases, tell):
        """Gives each report to `tell` as it comes, by scenario and database."""
        with ExitStack() as running:
            made = Databases(running)
            for name in names:
                port = free_port()
                with self.loader.upstream(name, port):
                    if name not in NEVER_DIRECT and name != SOAK:
                        tell(name, "direct", self.drive(name, port))
                    for database in databases if name not in OVER_ONE else [usual(databases)]:
                        self.through(name, database, made, port, tell)

    def through(self, name, database, made, upstream, tell):
        self.count += 1
        folder = self.folder / f"{self.count}-{name}-{database}"
        with stint(self.options.binary, folder, database, made, upstream, read(name).get("gateway")) as gateway:
            model = "auto" if name == "auto" else "m"
            report = self.drive(name, gateway.port, pid=gateway.pid, model=model)
            report["cold_start_seconds"] = gateway.ready_after
            tell(name, database, report)
            if name == "plain":
                rate = round(half(report), 1)
                added = self.drive(name, gateway.port, pid=gateway.pid, per_second=rate)
                added["direct"] = self.drive(name, upstream, per_second=rate)
                added["title"] = "plain, at half of its own rate"
                tell("plain-half", database, added)

    def drive(self, name, port, **more):
        seconds = self.options.soak_seconds if name == SOAK else self.options.seconds
        return self.loader.drive(name, port, seconds=seconds, **more)


def title(database):
    return "the upstream alone" if database == "direct" else DATABASES[database][0]
