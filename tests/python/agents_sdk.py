"""Agents as people write them, with OpenAI's and Anthropic's own SDKs, changed in the base URL and in what goes into the budget.

    python agents_sdk.py

Prints the address of the scripted models (load-tests/agents), reads that of the gateway, and prints what came of it. The key is
that of load-tests/agents.toml; `tests/it/simulated.rs` judges.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import anthropic
import openai

sys.path.append(str(Path(__file__).parents[2] / "load-tests" / "agents"))

from upstream import Upstream  # noqa: E402
from world import TOOLS, World  # noqa: E402

SYSTEM = "You answer questions by searching documents. policy: unaware"
LIMITS = {"tool_calls": {"search": 6, "open": 4}, "cost_usd": "0.05", "turns": 12}


class Agent:
    """One task, whatever SDK asks."""

    def __init__(self, world, task, name):
        self.world, self.task, self.executed, self.budgets = world, task, Counter(), []
        self.budget = {"budget": {"episode": {"id": name, **LIMITS}}}

    def call(self, name, arguments):
        said, count = self.world.call(name, arguments)
        self.executed[name] += count
        return said

    def facts(self, answer):
        return {"answer": answer, "executed": self.executed, "budgets": self.budgets}


def by_openai(client, agent):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": agent.task["question"]}]
    while True:
        answer = client.chat.completions.create(model="small-tracker", messages=messages, tools=TOOLS, extra_body=agent.budget)
        agent.budgets.append(answer.budget)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return agent.facts(message.content)
        for call in message.tool_calls:
            said = agent.call(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})


def by_openai_streamed(client, agent):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": agent.task["question"]}]
    while True:
        with client.chat.completions.stream(
            model="small-tracker", messages=messages, tools=TOOLS, extra_body=agent.budget,
            stream_options={"include_usage": True},
        ) as stream:
            for event in stream:
                if event.type == "chunk" and getattr(event.chunk, "budget", None):
                    agent.budgets.append(event.chunk.budget)
            message = stream.get_final_completion().choices[0].message
        kept = {"role": "assistant", "content": message.content}
        if not message.tool_calls:
            return agent.facts(message.content)
        kept["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
            for call in message.tool_calls]
        messages.append(kept)
        for call in message.tool_calls:
            said = agent.call(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})


def by_anthropic(client, agent):
    tools = [{"name": tool["function"]["name"], "description": tool["function"]["description"],
              "input_schema": tool["function"]["parameters"]} for tool in TOOLS]
    messages = [{"role": "user", "content": agent.task["question"]}]
    while True:
        answer = client.messages.create(
            model="small-tracker", max_tokens=400, system=SYSTEM, messages=messages, tools=tools, extra_body=agent.budget)
        agent.budgets.append(answer.budget)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
        called = [block for block in answer.content if block.type == "tool_use"]
        if not called:
            return agent.facts("".join(block.text for block in answer.content if block.type == "text"))
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block.id, "content": agent.call(block.name, json.dumps(block.input))}
            for block in called]})


def refused(client, agent):
    """One more step of a run that has no turn left."""
    once = {"budget": {"episode": {"id": "ended", "turns": 1}}}
    messages = [{"role": "user", "content": agent.task["question"]}]
    client.chat.completions.create(model="small-tracker", messages=messages, tools=TOOLS, extra_body=once)
    try:
        client.chat.completions.create(model="small-tracker", messages=messages, tools=TOOLS, extra_body=once)
    except openai.APIStatusError as error:
        retry = error.response.headers.get("x-should-retry")
        return {"class": type(error).__name__, "code": error.code, "budget": error.body.get("budget"), "retry": retry}
    return None


def main():
    upstream, world = Upstream(0, 1), World(1)
    print(upstream.base, flush=True)
    base = sys.stdin.readline().strip()
    theirs = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-agents")
    ours = anthropic.Anthropic(base_url=base, api_key="sk-agents")
    tasks = [task for task in world.tasks(40) if task["hops"] > 4][:3]
    print(json.dumps({
        "openai": [by_openai(theirs, Agent(world, task, f"o{task['number']}")) for task in tasks],
        "openai_streamed": [by_openai_streamed(theirs, Agent(world, task, f"s{task['number']}")) for task in tasks],
        "anthropic": [by_anthropic(ours, Agent(world, task, f"a{task['number']}")) for task in tasks],
        "refused": refused(theirs, Agent(world, tasks[0], "r")),
    }))


if __name__ == "__main__":
    main()
