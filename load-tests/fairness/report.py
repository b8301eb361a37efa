"""The table, and what in it breaks a promise."""

# What the others' p99 may become, of what it is without an attack.
RATIO_MAX = 2
MILLION = 1 << 20

HEAD = """\
| attack | it was answered | requests | refused | p50 quiet, attack | p99 quiet, elsewhere, attack | ratio | processors | MB before, peak, after | `/healthz` p99 quiet, attack |
|---|---|---|---|---|---|---|---|---|---|"""


def at(times, share):
    """In milliseconds; nothing where there are none."""
    return 1000 * times[min(len(times) - 1, int(share * len(times)))] if times else float("nan")


def quiet(result):
    """The rounds before and after, together."""
    return sorted(result.before.times + result.after.times)


def ratio(result):
    return at(result.attack.times, 0.99) / at(quiet(result), 0.99)


def row(result):
    attack, calm, health = result.attack, quiet(result), sorted(result.before.health + result.after.health)
    statuses = ", ".join(f"{count} × {status}" for status, count in sorted(attack.statuses.items()))
    megabytes = ", ".join(f"{bytes / MILLION:.0f}" for bytes in result.memory)
    cells = (
        result.name, statuses, len(attack.times) + len(attack.refused), len(attack.refused),
        f"{at(calm, 0.5):.1f}, {at(attack.times, 0.5):.1f} ms",
        f"{at(calm, 0.99):.1f}, {at(result.machine.times, 0.99):.1f}, {at(attack.times, 0.99):.1f} ms",
        f"{ratio(result):.2f}", f"{attack.processor:.2f}", megabytes,
        f"{at(health, 0.99):.1f}, {at(attack.health, 0.99):.1f} ms",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def is_beyond(result):
    """Whether the p99 of the others is beyond what is promised of a machine that does nothing else."""
    return not ratio(result) <= RATIO_MAX


def is_of_the_machine(result):
    """Whether it is so with the attack elsewhere too, or nearly."""
    return is_beyond(result) and at(result.attack.times, 0.99) <= RATIO_MAX * at(result.machine.times, 0.99)


def faults(result):
    """Which promises are broken."""
    broken = []
    if is_beyond(result) and not is_of_the_machine(result):
        broken.append(f"the p99 of the others became {ratio(result):.1f} times what it was "
                      f"({at(result.machine.times, 0.99) / at(quiet(result), 0.99):.1f} times with the attack elsewhere)")
    for name, refused in (("others were refused", result.attack.refused), ("checks of its health failed", result.attack.health_refused)):
        if refused:
            broken.append(f"{len(refused)} {name}, first with: {refused[0]}")
    return broken
