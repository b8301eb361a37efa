"""Gateways one at a time, in turn, several times over: medians of what each takes for a plain answer and for a stream."""

from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Callable

from peers import PEERS
from stints import DATABASES, Databases, stint

from gateway import free_port  # of load-tests/fairness

SCENARIOS = ["plain", "stream-53"]
# What all others are compared with.
MEASURE = "vllm-router"
# Slower ones have less to do, and more to forget.
WARM_UP = 2


@dataclass
class Contender:
    """A gateway that is started in a folder before an upstream, and what came of it in each round."""

    name: str
    title: str
    start: Callable
    model: str = "m"
    base: str = "/v1"
    why_not: str | None = None

    def __post_init__(self):
        self.reports = {scenario: [] for scenario in SCENARIOS}


def contenders(options, made):
    def own(database):
        def start(folder, upstream):
            return stint(options.binary, folder, database, made, upstream)
        return Contender(f"stint-{database}", f"Stint, {DATABASES[database][0]}", start)

    chosen = [peer for peer in PEERS if not options.only or any(word in peer.name for word in options.only)]
    return [Contender(peer.name, peer.title, peer.run, peer.model, peer.base, peer.install()) for peer in chosen] + \
        [own(database) for database in options.databases]


def play(options, loader, folder, tell):
    """The contenders after all rounds."""
    with ExitStack() as running:
        made = Databases(running)
        everyone = contenders(options, made)
        port = free_port()
        running.enter_context(loader.upstream(SCENARIOS[0], port))
        for at in range(options.rounds):
            # Each second round the other way around, so that nobody is always behind the same one.
            for contender in everyone if at % 2 == 0 else everyone[::-1]:
                if not contender.why_not:
                    play_once(contender, loader, folder / f"{at}-{contender.name}", port, options, tell)
    return everyone


def play_once(contender, loader, folder, upstream, options, tell):
    try:
        with contender.start(folder, upstream) as gateway:
            for scenario in SCENARIOS:
                report = loader.drive(scenario, gateway.port, pid=gateway.pid, base=contender.base, model=contender.model,
                                      seconds=options.seconds, warm_up=WARM_UP)
                contender.reports[scenario].append(report)
                tell(contender, scenario, report)
    except RuntimeError as error:
        contender.why_not = str(error)
        tell(contender, None, None)


def middle(contender, scenario, value):
    """The median over its rounds; nothing where it did not run."""
    values = [value(report) for report in contender.reports[scenario]]
    return median(values) if values else None


def micros(contender, scenario):
    return middle(contender, scenario, lambda report: report["gateway"]["micros_per_request"])
