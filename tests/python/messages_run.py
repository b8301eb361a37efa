"""Anthropic's own SDK through a gateway: an answer after a thought, and a run with a tool, whole, streamed, and by its own loop."""

import json
import sys

import anthropic

base, key, model = sys.argv[1:]
client = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
thinking = {"type": "enabled", "budget_tokens": 1100}
search = {"name": "search", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}
question = [{"role": "user", "content": "What is 12+34+5?"}]


def ask(streamed, messages, **more):
    asked = {"model": model, "max_tokens": 2000, "thinking": thinking, "messages": messages, **more}
    if not streamed:
        return client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message()


def run(streamed):
    """Three requests: a question, a call, and the answer from what the tool gave back."""
    answer = ask(streamed, question)
    call = ask(streamed, question, tools=[search])
    use = call.content[-1]
    result = {"type": "tool_result", "tool_use_id": use.id, "content": [{"type": "text", "text": "a cat"}]}
    turns = [*question, {"role": "assistant", "content": call.content}, {"role": "user", "content": [result]}]
    last = ask(streamed, turns, tools=[search])
    return {
        "kinds": [[block.type for block in message.content] for message in (answer, call, last)],
        "thought": answer.content[0].thinking,
        "answer": answer.content[-1].text,
        "tool": [use.name, use.input],
        "last": last.content[-1].text,
        "stops": [message.stop_reason for message in (answer, call, last)],
        "usage": [[message.usage.input_tokens, message.usage.output_tokens] for message in (answer, call, last)],
    }


def runner():
    """The SDK's own loop, which asks for a thread first."""
    called = []

    @anthropic.beta_tool
    def search(q: str) -> str:
        """Finds things."""
        called.append(q)
        return "a cat"

    asked = {"model": model, "max_tokens": 2000, "thinking": thinking, "messages": question, "tools": [search]}
    last = client.beta.messages.tool_runner(**asked).until_done()
    return {"last": last.content[-1].text, "called": called}


print(json.dumps({"whole": run(False), "streamed": run(True), "runner": runner()}))
