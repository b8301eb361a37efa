"""The client's side: an agent that asks the gateway, runs the tools that it is told to, and sends the whole history back."""

from dataclasses import dataclass, field

from world import TOOLS

# A client that nothing else stops gives up here; one whose run is limited far beyond what its limits allow.
TURNS_FREE = 20
TURNS_LIMITED = 80
NANOS = 10**9


@dataclass
class Outcome:
    """What came of one task."""

    task: dict
    solved: bool = False
    # "answer", "refused" (the gateway said which limit is spent), "ceiling" (the client gave up) or "broken" (anything else).
    end: str = "ceiling"
    why: str = ""
    turns: int = 0
    executed: dict = field(default_factory=lambda: {"search": 0, "open": 0})
    # Nano-dollars, as the gateway told them with each answer.
    cost: int = 0
    # Who answered each step, and the share of the run's money that was left before it, where that is limited.
    steps: list = field(default_factory=list)
    # What the gateway said of the run at the last answer.
    told: dict = field(default_factory=dict)

    @property
    def calls(self):
        return sum(self.executed.values())


@dataclass(frozen=True)
class Manner:
    """How a client goes about it."""

    model: str
    policy: str = "heeding"
    # Its words on the run, in the request's `budget`; `id` stands for a name of the run.
    budget: dict = None
    # It sends no history, only the question, each time.
    forgets: bool = False


def run(caller, world, task, manner, name, stream):
    """One task, from its question to its end."""
    outcome = Outcome(task)
    messages = [
        {"role": "system", "content": f"You answer questions by searching documents. policy: {manner.policy}"},
        {"role": "user", "content": task["question"]},
    ]
    while outcome.turns < (TURNS_LIMITED if manner.budget else TURNS_FREE):
        body = {"model": manner.model, "messages": messages[:2] if manner.forgets else messages, "tools": TOOLS}
        if manner.budget:
            body["budget"] = named(manner.budget, name)
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        status, answer = caller.chat(body)
        if status != 200:
            refused(outcome, status, answer)
            return outcome
        message = took(outcome, answer)
        messages.append(message)
        if not message.get("tool_calls"):
            concluded(outcome, message)
            return outcome
        messages += [result(world, outcome, call) for call in message["tool_calls"]]
    return outcome


def named(budget, name):
    """The budget with the run's name in it, where it has one."""
    episode = budget.get("episode")
    return {**budget, "episode": {**episode, "id": name}} if episode else budget


def took(outcome, answer):
    """Counts one answer; gives back its message as a client keeps it."""
    budget = answer.get("budget", {})
    outcome.turns += 1
    outcome.cost += nanos(budget.get("cost_usd", "0"))
    outcome.steps.append((budget.get("model") or answer["model"], left(outcome.told)))
    outcome.told = budget.get("episode") or outcome.told
    said = answer["choices"][0]["message"]
    return {name: said.get(name) for name in ("role", "content", "tool_calls") if said.get(name) is not None}


def left(told):
    """The share of a run's money that is left; all of it before its first answer."""
    if "left_usd" not in told:
        return 1.0
    money = nanos(told["left_usd"])
    return money / max(1, money + nanos(told["cost_usd"]))


def result(world, outcome, call):
    function = call["function"]
    said, count = world.call(function["name"], function["arguments"])
    outcome.executed[function["name"]] = outcome.executed.get(function["name"], 0) + count
    return {"role": "tool", "tool_call_id": call["id"], "content": said}


def concluded(outcome, message):
    said = (message.get("content") or "").strip()
    outcome.end = "answer" if said.startswith("Answer: ") else "broken"
    outcome.why = "" if outcome.end == "answer" else f"an answer without words: {message}"
    outcome.solved = outcome.task["answer"] is not None and said == f"Answer: {outcome.task['answer']}."


def refused(outcome, status, answer):
    """A clear refusal says that the budget is spent and which limit it was; anything else is none."""
    error = answer.get("error", {})
    limit = (answer.get("budget") or error.get("budget") or {}).get("limit")
    is_clear = status == 429 and error.get("code") == "insufficient_quota" and limit
    outcome.end, outcome.why = ("refused", limit) if is_clear else ("broken", f"{status}: {str(answer)[:400]}")


def nanos(dollars):
    """Decimal text in nano-dollars, exactly."""
    whole, _, part = str(dollars).partition(".")
    return int(whole) * NANOS + int(f"{part:0<9}"[:9])
