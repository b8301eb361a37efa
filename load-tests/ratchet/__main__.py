"""Holds what a request takes to what was agreed, in numbers that no other work on the machine moves.

    python load-tests/ratchet allocations                  # CI's part: how often memory is asked for, and for how much
    python load-tests/ratchet allocations instructions     # instructions too, which need a release binary and valgrind
    python load-tests/ratchet allocations --set            # writes them to load-tests/ratchet.toml

Ends with 1 where a number is worse than agreed by more than 3 %; one that is better by more is told. Standard library only.
"""

import argparse
import sys
from pathlib import Path

import agreed
import allocations
import instructions

KINDS = {"allocations": allocations.measure, "instructions": instructions.measure}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="+", choices=KINDS)
    parser.add_argument("--set", action="store_true", help="agree on what is measured")
    parser.add_argument("--binary", type=Path, default=Path("target/release/stint"))
    parser.add_argument("--loader", type=Path, default=Path("target/release/loader"))
    options = parser.parse_args()
    before, measured = agreed.read(), {}
    for kind in options.kinds:
        measured |= flat(KINDS[kind](options))
    for section, members in measured.items():
        print(f"{section}: " + ", ".join(f"{value:,} {name}" for name, value in members.items()))
    changes = list(agreed.changes(flat(before), measured))
    for change in changes:
        print(f"ratchet: {change}", file=sys.stderr)
    if options.set:
        agreed.write(flat(before) | measured)
    elif any(change.breaks for change in changes):
        sys.exit(1)


def flat(sections):
    """Sections by their dotted names."""
    found = {}
    for name, members in sections.items():
        if any(isinstance(member, dict) for member in members.values()):
            found |= flat({f"{name}.{inner}": section for inner, section in members.items()})
        else:
            found[name] = members
    return found


if __name__ == "__main__":
    main()
