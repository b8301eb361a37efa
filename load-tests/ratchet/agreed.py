"""What was agreed of each number, and what has become of it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path("load-tests/ratchet.toml")
# A number may be worse by this share, so that no chance breaks it. One that is better by more is told, so that what was won is kept.
MARGIN = 0.03
# Bytes may be so by more: what was learned is copied by the clock, fifty times a second, and how often that is depends on the machine.
MARGIN_OF_BYTES = 0.2

HEAD = """\
# What a request may take, each with a margin of 3 %, bytes of 20 %: a change that takes more fails and says which; one that takes less is told, to
# lower the number. Written by `make ratchet-set`. `docs/measured.md` has what it comes to in time.
"""


@dataclass(frozen=True)
class Change:
    """A number that is not what was agreed."""

    name: str
    agreed: int | None
    measured: int

    @property
    def breaks(self):
        """Better is no reason to stop anybody."""
        return self.agreed is None or self.measured > self.agreed

    def __str__(self):
        if self.agreed is None:
            return f"{self.name}: {self.measured:,} is measured and nothing agreed; write it with `make ratchet-set`"
        share = 100 * (self.measured / self.agreed - 1)
        end = "worse; make it cheaper, or say why it is worth it and run `make ratchet-set`" if share > 0 else \
            "better; keep what was won with `make ratchet-set`"
        return f"{self.name}: {self.measured:,} where {self.agreed:,} is agreed, {abs(share):.1f} % {end}"


def read():
    return tomllib.loads(FILE.read_text()) if FILE.exists() else {}


def write(numbers):
    """All sections, so that one that was not measured stays as it is."""
    lines = [HEAD]
    for section, members in sorted(numbers.items()):
        lines += [f"\n[{section}]\n", *(f"{name} = {value}\n" for name, value in members.items())]
    FILE.write_text("".join(lines))


def changes(agreed, measured):
    """What differs by more than the margin, section by section."""
    for section, members in measured.items():
        for name, value in members.items():
            before = agreed.get(section, {}).get(name)
            margin = MARGIN_OF_BYTES if name == "bytes" else MARGIN
            if before is None or abs(value - before) > margin * before:
                yield Change(f"{section}.{name}", before, value)
