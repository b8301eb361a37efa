"""What is tried: each provider's models under limits, with retries, forks, edits, switches and cascades."""

from dataclasses import dataclass, field

ONE = {"anthropic": ["claude-opus-5-5"], "openai": ["gpt-plain"], "responses": ["gpt-items"], "deepseek": ["seek"]}
ALL = ("anthropic", "openai", "responses", "deepseek")
CLAUDES = {"anthropic": ["claude-opus-5-5", "claude-sonnet-5-5"]}


@dataclass(frozen=True)
class Scenario:
    what: str
    # By provider the models that are asked, one after the other, `each` for so many turns.
    models: dict = field(default_factory=lambda: {"*": ONE})
    each: int = 1
    budget: dict = None
    effort: str = "medium"
    dialects: tuple = ("chat", "messages", "responses")
    follow_ups: int = 0
    forks: bool = False
    regenerates: bool = False
    hangs_up: bool = False
    edits: bool = False
    # Of a hundred episodes of a provider.
    weight: int = 4


def limited(**limits):
    return {"tool_calls": limits}


SCENARIOS = {
    "plain": Scenario("no limits", weight=8),
    "unsaid": Scenario("no limits; how hard to think is left to the gateway", effort=None, weight=6),
    "limits": Scenario("limits on calls, without a name", budget=limited(search=3, open=4), follow_ups=1, weight=10),
    "named": Scenario("a named run with limits on calls, turns and money", follow_ups=1, weight=10, budget={
        "episode": {"id": "NAME", "cost_usd": "0.6", "turns": 12, "tool_calls": {"search": 4, "open": 4, "note": 6}}}),
    "forbidden": Scenario("only a tool that is used up is called", budget=limited(search=2), follow_ups=1, weight=8),
    "beyond": Scenario("many calls at once, beyond the limit", budget={"tool_calls": {"*": 12}}, weight=8),
    "turns": Scenario("five turns", budget={"turns": 5}, follow_ups=1, weight=6),
    "capped": Scenario("the route asks for the answer at its sixth turn", {"anthropic": ["anthropic-turns"]}, follow_ups=1),
    "long": Scenario("more turns than the tracker has room for", budget={"tool_calls": {"*": 60}}, follow_ups=1),
    "circles": Scenario("the same call with the same result", budget={"tool_calls": {"*": 20}}),
    "follow_ups": Scenario("the user asks on", budget=limited(search=6, open=6, note=6), follow_ups=3, weight=6),
    "forks": Scenario("goes on from the middle twice", budget=limited(search=9, open=9, note=9), forks=True, weight=6),
    "again": Scenario("answers are regenerated", budget=limited(search=6, open=6, note=6), regenerates=True, weight=6),
    "hang_up": Scenario("callers hang up in the middle and go on from what they heard", budget=limited(search=6, open=6, note=6),
                        dialects=("chat", "messages"), hangs_up=True, weight=6),
    "edits": Scenario("callers shorten what tools brought long ago", budget=limited(search=6, open=6, note=6), edits=True),
    "cut": Scenario("thoughts that the gateway cuts", {"anthropic": ["claude-sonnet-5-5"], "deepseek": ["seek"]}, effort=None,
                    budget={"thinking_tokens": 600, "tool_calls": {"search": 6, "open": 6, "note": 6}}),
    "switches": Scenario("callers switch among three models every other turn",
                         {"anthropic": ["claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-4-7"]}, each=2,
                         budget=limited(search=6, open=6, note=6), weight=8),
    "automatic": Scenario("a route of three models", {"anthropic": ["anthropic-auto"]}, budget=limited(search=4, open=4, note=6), weight=6),
    "mixed": Scenario("a route of models of four providers", {"anthropic": ["mixed-auto"]}, budget=limited(search=4, open=4, note=6), weight=6),
    "providers": Scenario("callers switch among models of four providers", {"anthropic": ["claude-opus-5-5", "gpt-items", "seek", "gpt-plain"]},
                          each=2, budget=limited(search=6, open=6, note=6), weight=6),
    "cascades": Scenario("votes and cascades on final answers", {"anthropic": ["anthropic-cascade"]}, budget={"turns": 5}, weight=6),
    "words_after": Scenario("words behind calls in one turn", {"anthropic": ["claude-opus-5-5"], "responses": ["gpt-items"]},
                            budget=limited(search=6, open=6, note=6), weight=2),
}
# Of every hundred episodes.
SHARES = {"anthropic": 55, "responses": 18, "openai": 12, "deepseek": 15}


def drawn(count):
    """(provider, scenario, number) of each episode, mixed."""
    plan, due = [], 0.0
    for provider, share in SHARES.items():
        known = {name: one for name, one in SCENARIOS.items() if provider in one.models or "*" in one.models}
        weight = sum(one.weight for one in known.values())
        for name, one in known.items():
            # What one is rounded down by, the next has more of: they are as many as were asked for, where none is left out.
            before, due = round(due), due + count * share / 100 * one.weight / weight
            plan += [(provider, name, number) for number in range(max(1, round(due) - before))]
    return sorted(plan, key=lambda one: (one[2], one[1], one[0]))
