"""Codex and Claude Code through a gateway over providers that bind each thought to all that stood before it, want reasoning back where it
stood, and keep prompts in caches as they do (those of `load-tests/prefixes`): whole runs, limits, and sessions that are gone on from.

    python binding.py STINT NODE_MODULES

Fails where a provider refuses something, or drops a thought.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "load-tests" / folder) for folder in ("prefixes", "agents", "fairness")]

from emulators import Emulators  # noqa: E402
from gateways import Gateways  # noqa: E402
from models import settings  # noqa: E402
from programs import Programs  # noqa: E402

PAIRS = [("claude", "claude-opus-5-5"), ("codex", "gpt-items"), ("codex", "claude-opus-5-5"), ("claude", "gpt-items")]
LIMITS = {"X-Budget-Tool-Calls": '{"*": 6}', "X-Budget-Turns": "20"}


def spoken(body):
    """(who, words) of all that was said, in order."""
    if "messages" in body:
        return [(message["role"], json.dumps(message["content"])) for message in body["messages"]]
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    own = lambda item: "assistant" if item.get("type") in ("function_call", "reasoning") else item.get("role") or "tool"
    return [(own(item), json.dumps(item)) for item in items]


def call(offered, command):
    name = next(name for name in ("Bash", "exec_command", "shell") if name in offered)
    given = {"Bash": {"command": command, "description": "runs it"}, "exec_command": {"cmd": command}}
    return ("call", name, given.get(name) or {"command": ["bash", "-lc", command]})


def said(view, body):
    """What the model says: thoughts before and between texts and calls."""
    if view.is_told_final or not view.offered:
        return [("thought", "Enough of it."), ("text", "I have to end here.")]
    turns = spoken(body)
    asked = max((at for at, (who, words) in enumerate(turns) if who == "user" and "TASK" in words), default=None)
    if asked is None:
        return [("text", "ok")]
    task = re.findall(r"TASK (\w+)", turns[asked][1])[-1]
    # Of items, several make a turn.
    after = [who == "assistant" for who, _ in turns[asked:]]
    taken = sum(own and not before for own, before in zip(after[1:], after))
    if task == "forever" or taken == 0:
        calls = [("thought", f"One, at {taken}."), ("text", f"I write ({taken})."), call(view.offered, f"echo {taken} >> steps.txt")]
        return calls + ([("thought", "And another."), call(view.offered, "cat steps.txt")] if taken % 2 == 0 else [])
    if taken == 1:
        return [("thought", "Is it there?"), call(view.offered, "cat steps.txt")]
    return [("thought", "It is."), ("text", f"It is done, {task}.")]


def tries(programs, emulators, program, model):
    before = len(emulators.asked)
    name = {"X-Episode-Id": f"{program}-{model}-limits"}
    printed, _ = programs.through(program, model, "TASK forever", LIMITS | name)
    assert "I have to end here." in printed, printed
    # A session of three starts, as one run that nobody names.
    printed, places = programs.through(program, model, "TASK first", {})
    assert "It is done, first." in printed, printed
    for task in ("second", "third"):
        printed, _ = programs.through(program, model, f"TASK {task}", {}, places)
        assert f"It is done, {task}." in printed, printed
    calls = emulators.asked[before:]
    refused = [one.refused for one in calls if one.refused]
    dropped = [(one.at, one.dropped, one.why) for one in calls if one.dropped]
    assert not refused, refused
    assert not dropped, dropped
    prompt, cached = sum(one.bill.prompt for one in calls), sum(one.bill.cached for one in calls)
    print(f"{program} {model}: {len(calls)} calls, {100 * cached / prompt:.0f} % of {prompt} tokens cached, none refused or dropped", flush=True)


def main(stint, modules):
    emulators = Emulators(1, checks_betas=True)
    emulators.said = said
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as data:
        gateways = Gateways(stint, f"{data}/gateway", settings(emulators.base))
        programs = Programs(modules, f"http://127.0.0.1:{gateways.ports[0]}", data, "sk-agents")
        try:
            for program, model in PAIRS:
                tries(programs, emulators, program, model)
        finally:
            programs.stop()
            gateways.stop()
            emulators.shutdown()


main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
