"""The rounds of one attack: quiet, the same attack elsewhere, and the attack."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from gateway import ATTACKER, OTHERS
from report import faults, ratio

# How long an attack goes on before it is measured.
AHEAD = 1.5
# The attacker's own processor time is no part of what is measured: it gets what the gateway leaves. Whoever measures gets its own
# at once, where this user may ask for that.
BEHIND_OTHERS = 19
AHEAD_OF_OTHERS = -10 if os.getuid() == 0 else 0
# How often an attack is tried that breaks the promised ratio: machines are shared.
TRIES = 3


def python(file, *arguments, nice=0):
    return ["nice", "-n", str(nice), sys.executable, str(Path(__file__).parent / file), *map(str, arguments)]


@dataclass
class Round:
    """What ten tenants saw, and what the gateway did meanwhile."""

    times: list
    refused: list
    health: list
    health_refused: list
    reopened: int
    processor: float
    statuses: dict = field(default_factory=dict)


@dataclass
class Result:
    """All rounds of one attack. `memory` has bytes before, at the peak, and after a pause."""

    name: str
    before: Round
    machine: Round
    attack: Round
    memory: list
    gateway: object
    after: Round = None

    def settle(self, after):
        self.after = after
        self.memory.append(self.gateway.resident()[0])


class Rounds:
    def __init__(self, options, gateway, other):
        self.seconds, self.gateway, self.other = options.seconds, gateway, other

    def quiet(self):
        return self.measure(self.seconds / 2)

    def best(self, name, before, pause):
        """The first try of an attack that breaks nothing, else the one with the least ratio; and the quiet round after it."""
        tries = []
        while len(tries) < TRIES:
            result = self.attack(name, before)
            time.sleep(pause)
            before = self.quiet()
            result.settle(before)
            tries.append(result)
            if not faults(result):
                return result, before
        return min(tries, key=lambda result: (len(result.attack.refused), ratio(result))), before

    def attack(self, name, before):
        machine = self.under(name, self.other, self.seconds / 2)
        time.sleep(1)
        memory = [self.gateway.resident()[0]]
        self.gateway.forget_peak()
        attack = self.under(name, self.gateway, self.seconds)
        memory.append(self.gateway.resident()[1])
        return Result(name, before, machine, attack, memory, self.gateway)

    def under(self, name, target, seconds):
        """A round in which this gateway is attacked."""
        command = python("attacks.py", name, target.port, ATTACKER, seconds + AHEAD, nice=BEHIND_OTHERS)
        attacker = subprocess.Popen(command, stdout=subprocess.PIPE)
        time.sleep(AHEAD)
        measured = self.measure(seconds)
        measured.statuses = json.loads(attacker.communicate(timeout=60)[0] or "{}")
        return measured

    def measure(self, seconds):
        began = self.gateway.processor_time()
        command = python("measure.py", self.gateway.port, seconds, *OTHERS, nice=AHEAD_OF_OTHERS)
        measured = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return Round(**measured, processor=(self.gateway.processor_time() - began) / seconds)
