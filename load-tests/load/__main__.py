"""Load, and what it costs: Stint over each of its databases, or beside other gateways.

    python load-tests/load scenarios --binary target/release/stint --loader target/release/loader
    python load-tests/load peers --rounds 3

Upstream and callers have the first core and the gateway the second, where there are two. The figure that other work on the machine
hardly moves is the processor time of the gateway's processes for each request (utime + stime); latencies are those of this machine on
that day. Writes a table, its figures and a picture to load-tests/results. `scenarios --only` replaces the rows it measures and keeps the
others. Ends with 1 where an answer of Stint's was not what it should have been. Standard library only.
"""

import argparse
import json
import resource
import sys
import tempfile
from datetime import date
from pathlib import Path

import pictures
import rounds
import scenarios
import tables
from loader import Loader
from stints import DATABASES

COMMANDS = {"scenarios": "make load", "peers": "make load-peers"}
TEXT = """\
# {title}

Written by `{command}` on {day}. {how}

{table}
"""
HOW = """\
Upstream and callers on core 0, the gateway on core 1; 16 connections where the scenario says nothing else; everything on that a user \
gets: learning, the decision log, a log line for each request. Scenarios: `load-tests/scenarios/load`. CPU is the time of the gateway's \
processes (utime + stime), PostgreSQL's own not among them. The machine is shared: compare ratios of one run."""
HOW_PEERS = """\
One gateway at a time on core 1, upstream and callers on core 0, 16 connections, {rounds} rounds in alternating order, {seconds:g} s a \
measurement, medians. Others are installed from PyPI and Debian and started without database, limits or telemetry; Stint has everything \
on: learning, the decision log, a log line for each request. A gateway that is not there says why in the last column."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--binary", type=Path, default=Path("target/release/stint"))
    parser.add_argument("--loader", type=Path, default=Path("target/release/loader"))
    parser.add_argument("--only", nargs="*", default=[], help="scenarios or gateways with one of these in their names")
    parser.add_argument("--databases", nargs="*", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--seconds", type=float, help="of a measurement; without it what each scenario says, and 5 for peers")
    parser.add_argument("--soak-seconds", type=float, help="of the soak; ten minutes without it")
    parser.add_argument("--rounds", type=int, default=3, help="of peers")
    parser.add_argument("--note", default="", help="a sentence for the report, say of the binary")
    parser.add_argument("--out", type=Path, default=Path("load-tests/results"))
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    with tempfile.TemporaryDirectory() as folder:
        # nginx's workers give up being root, and must still find it.
        Path(folder).chmod(0o755)
        loader = Loader(options.loader.resolve(), folder)
        faults = {"scenarios": measure_scenarios, "peers": measure_peers}[options.what](options, loader, Path(folder))
    sys.exit(1 if faults else 0)


def measure_scenarios(options, loader, folder):
    file = options.out / "load.json"
    results = json.loads(file.read_text()) if file.exists() and options.only else {}
    names = [*scenarios.ALL, *scenarios.MATRIX, scenarios.SOAK]
    names = [name for name in names if not options.only or any(word in name for word in options.only)]
    faults = []

    def tell(name, database, report):
        results.setdefault(name, {})[database] = report
        print(tables.row(database, report), flush=True)
        faults.extend(report["faults"] if database != "direct" else [])
        # Each as it comes: an hour is long.
        save_scenarios(options, results)

    scenarios.Measurement(loader, options, folder).run(names, options.databases, tell)
    print("\n" + tables.scenarios(in_order(results)))
    return faults


def save_scenarios(options, results):
    results = in_order(results)
    groups = [(next(iter(by.values()))["title"], [micros(by.get(database)) for database in DATABASES]) for by in results.values()]
    groups = [group for group in groups if any(group[1])]
    series = [DATABASES[database][0] for database in DATABASES]
    picture = pictures.bars("Processor time of a request", "µs", groups, series) if groups else ""
    how = f"{HOW} {options.note}".strip()
    write(options.out / "load", "Load", "scenarios", how, tables.scenarios(results), results, picture)


def in_order(results):
    order = {name: at for at, name in enumerate(["plain", "plain-half", *scenarios.ALL[1:], *scenarios.MATRIX, scenarios.SOAK])}
    return dict(sorted(results.items(), key=lambda item: order.get(item[0], len(order))))


def micros(report):
    return report["gateway"]["micros_per_request"] if report and report["gateway"] else None


def measure_peers(options, loader, folder):
    options.seconds = options.seconds or 5

    def tell(contender, scenario, report):
        if report:
            print(f"{contender.title}, {scenario}: {micros(report):.0f} µs, faults: {tables.faults(report)}", flush=True)
        else:
            print(f"{contender.title}: {contender.why_not}", flush=True)

    everyone = rounds.play(options, loader, folder, tell)
    results = {peer.name: {"title": peer.title, "why_not": peer.why_not, "rounds": peer.reports} for peer in everyone}
    groups = [(peer.title, [rounds.micros(peer, scenario) for scenario in rounds.SCENARIOS]) for peer in everyone if not peer.why_not]
    picture = pictures.bars("Processor time of a request", "µs", groups, ["plain", "stream of 53 events"])
    print("\n" + tables.peers(everyone))
    how = f"{HOW_PEERS.format(rounds=options.rounds, seconds=options.seconds)} {options.note}".strip()
    write(options.out / "load-peers", "Load, beside other gateways", "peers", how, tables.peers(everyone), results, picture)
    own = [peer for peer in everyone if peer.name.startswith("stint")]
    return [fault for peer in own for reports in peer.reports.values() for report in reports for fault in report["faults"]]


def write(path, title, what, how, table, results, picture):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = TEXT.format(title=title, command=COMMANDS[what], day=date.today(), how=how, table=table)
    path.with_suffix(".md").write_text(text)
    path.with_suffix(".json").write_text(json.dumps(rounded(results), indent=1) + "\n")
    path.with_suffix(".svg").write_text(picture)


def rounded(value):
    """Without digits that mean nothing, and without each second of what was watched."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(member) for name, member in value.items() if name != "samples"}
    if isinstance(value, list):
        return [rounded(member) for member in value]
    return value


if __name__ == "__main__":
    main()
