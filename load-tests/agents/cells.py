"""What is run: conditions × who answers × how much there is; and clients that try to get more."""

from dataclasses import dataclass

from loop import Manner

# Calls of each tool and dollars for a whole run.
LEVELS = {
    "tight": {"tool_calls": {"search": 12, "open": 8}, "cost_usd": "0.030"},
    "loose": {"tool_calls": {"search": 30, "open": 16}, "cost_usd": "0.080"},
}
# For the hard cells alone: hardly what one answer of the large model costs at most.
SCANTY = {"scanty": {"tool_calls": {"search": 12, "open": 8}, "cost_usd": "0.005"}}
SERVERS = ("small", "large", "auto")
# Name, the route's suffix, the models' policy, what it is.
CONDITIONS = (
    ("caps", "caps", "heeding", "limits alone; the models are told nothing"),
    ("unaware", "tracker", "unaware", "limits and tracker, which the models do not heed"),
    ("tracker", "tracker", "heeding", "limits and tracker"),
    ("turns 12", "turns", "heeding", "limits, tracker, at most 12 turns"),
    ("turns learned", "learned", "heeding", "limits, tracker, as many turns as such tasks usually take"),
)


@dataclass(frozen=True)
class Cell:
    """Many tasks under one condition."""

    condition: str
    server: str
    level: str
    manner: Manner
    # So many clients have one run together, at once.
    together: int = 1
    # True where those that are together ask the same question, and no run has a name.
    are_twins: bool = False

    @property
    def name(self):
        return f"{self.condition}, {self.server}, {self.level}"

    @property
    def limits(self):
        return {**LEVELS, **SCANTY}.get(self.level)


def measured():
    """Every cell of the table."""
    for server in SERVERS:
        yield Cell("no budget", server, "none", Manner(f"{server}-caps"))
    for level, limits in LEVELS.items():
        for condition, suffix, policy, _ in CONDITIONS:
            for server in SERVERS:
                yield Cell(condition, server, level, Manner(f"{server}-{suffix}", policy, {"episode": limits}))


def hard():
    """Clients that are hard to hold. Nothing is claimed of them but that limits hold."""
    for level, limits in LEVELS.items():
        run = {"tool_calls": limits["tool_calls"], "turns": 12}
        yield Cell("forgets its history", "auto", level, Manner("auto-tracker", "unaware", {"episode": limits}, forgets=True))
        yield Cell("three share a run", "auto", level, Manner("auto-tracker", "unaware", {"episode": limits}), together=3)
        yield Cell("unnamed", "auto", level, Manner("auto-tracker", "unaware", run))
        yield Cell("unnamed twins", "small", level, Manner("small-tracker", "unaware", run), together=2, are_twins=True)
    for level, limits in SCANTY.items():
        for server in ("large", "auto"):
            yield Cell("scanty money", server, level, Manner(f"{server}-tracker", "unaware", {"episode": limits}))
