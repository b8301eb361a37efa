"""Anthropic's own SDK against one address: an answer after a thought, a run with a tool, two refusals."""

import json
import sys

import anthropic

# The SDK puts the version's path in front of its endpoints by itself.
base, key = sys.argv[1].removesuffix("/v1"), sys.argv[2]
client = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
model = "claude-budget"
thinking = {"type": "enabled", "budget_tokens": 1024}
search = {"name": "search", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}
usage = []


def ask(messages, **more):
    with client.messages.stream(
        model=model, max_tokens=2000, thinking=thinking, messages=messages, **more
    ) as stream:
        message = stream.get_final_message()
    usage.append([message.usage.input_tokens, message.usage.output_tokens])
    return message


def refused(client, **more):
    try:
        client.messages.create(**{"model": model, "max_tokens": 2000, "messages": question, **more})
    except anthropic.APIStatusError as error:
        return type(error).__name__
    return None


question = [{"role": "user", "content": "What is 12+34+5?"}]
answer = ask(question)
call = ask(question, tools=[search])
use = call.content[-1]
result = {"type": "tool_result", "tool_use_id": use.id, "content": "a cat"}
turns = [*question, {"role": "assistant", "content": call.content}, {"role": "user", "content": [result]}]
last = ask(turns, tools=[search])

print(
    json.dumps(
        {
            "thought": answer.content[0].thinking,
            "answer": answer.content[-1].text,
            "tool": [use.name, use.input],
            "last": last.content[-1].text,
            "usage": usage,
            "refused": [
                refused(client, thinking={"type": "enabled", "budget_tokens": 1000}),
                refused(anthropic.Anthropic(base_url=base, api_key="another", max_retries=0)),
            ],
        }
    )
)
