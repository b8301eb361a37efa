"""Runs simulated agents through a gateway and writes what limits, tracker, turn caps and routing come to, as markdown.

    python load-tests/agents --gateway http://127.0.0.1:8080 --upstream 18085 --out load-tests/results

It plays both sides: the scripted models behind the gateway (which must be configured as load-tests/agents.toml is) and the agents
before it. `--gateway -` reads the address from standard input, after that of the models was printed, and prints what was broken at
the end. Ends with 1 where anything was broken that must always hold. Standard library only.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from caller import Caller
from cells import hard, measured
from report import table
from trial import trial
from upstream import Upstream
from world import World


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gateway", default="http://127.0.0.1:8080")
    parser.add_argument("--upstream", type=int, default=18085, help="the port of the scripted models; 0 for any")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--hard-tasks", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--only", default="", help="cells with this in their names")
    parser.add_argument("--out", type=Path, help="a folder for agents.md; nothing is written without it")
    options = parser.parse_args()
    upstream, world = Upstream(options.upstream, options.seed), World(options.seed)
    if is_asked := options.gateway == "-":
        print(upstream.base, flush=True)
        options.gateway = sys.stdin.readline().strip()
    caller, tasks, began, trials = Caller(options.gateway), world.tasks(options.tasks), time.time(), []
    for cells, count in ((measured(), options.tasks), (hard(), options.hard_tasks)):
        for cell in cells:
            if options.only not in cell.name:
                continue
            trials.append(trial(caller, world, upstream, cell, tasks[:count], options.concurrency))
            line = f"{time.time() - began:.0f} s: {cell.name}: {summary(trials[-1])}"
            print(line, file=sys.stderr, flush=True)
            for fault in trials[-1].faults[:5]:
                print(f"    {fault}", file=sys.stderr, flush=True)
    text = table(trials, options, time.time() - began)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "agents.md").write_text(text)
    faults = [fault for one in trials for fault in one.faults]
    print(json.dumps({"cells": len(trials), "faults": faults}) if is_asked else text)
    sys.exit(1 if faults else 0)


def summary(trial):
    mean = lambda numbers: sum(numbers) / max(1, len(trial.outcomes))
    ends = {end: sum(one.end == end for one in trial.outcomes) for end in ("answer", "refused", "ceiling", "broken")}
    return (f"{100 * mean(one.solved for one in trial.outcomes):.1f} % solved, {mean(one.cost for one in trial.outcomes) / 1e6:.2f} m$, "
            f"{mean(one.calls for one in trial.outcomes):.1f} calls, {mean(one.turns for one in trial.outcomes):.1f} turns, "
            f"{ends}, {trial.billed}, {len(trial.faults)} faults")


if __name__ == "__main__":
    main()
