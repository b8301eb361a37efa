"""Talks to a gateway through OpenAI's own SDK, changed only in the base URL, and prints what came of it.

    python official_sdk.py BASE_URL MODEL < problems.jsonl

The keys are those of `tests/it/sdk.rs`, which judges; `tests/node/official_sdk.mjs` does the same in Node.
"""

import json
import sys

import openai

CUT = {"budget": {"thinking_tokens": 8}}


def main():
    base, model = sys.argv[1:]
    questions = [json.loads(line)["question"] for line in sys.stdin]
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-test")
    print(json.dumps({
        "models": [listed.id for listed in client.models.list()],
        "plain": [whole(client, model, question) for question in questions],
        "cut": [whole(client, model, question, extra_body=CUT) for question in questions],
        "plain_streamed": [streamed(client, model, question) for question in questions],
        "cut_streamed": [streamed(client, model, question, extra_body=CUT) for question in questions],
        "errors": {
            "model": error(client, "nobody", questions[0]),
            "budget": error(client, model, questions[0], extra_body={"budget": {"thinking_tokens": -1}}),
            "key": error(client.with_options(api_key="sk-wrong"), model, questions[0]),
            "spent": error(client.with_options(api_key="sk-poor"), model, questions[0]),
        },
    }))


def request(model, question):
    return {"model": model, "messages": [{"role": "user", "content": question}], "temperature": 0}


def whole(client, model, question, **more):
    answer = client.chat.completions.create(**request(model, question), **more)
    [choice] = answer.choices
    return {
        "thought": getattr(choice.message, "reasoning_content", None),
        "answer": choice.message.content,
        "finish": choice.finish_reason,
        "usage": answer.usage.model_dump(),
        "budget": answer.budget,
    }


def streamed(client, model, question, **more):
    """The same shape, put together from the chunks."""
    options = {"stream": True, "stream_options": {"include_usage": True}}
    said = {"thought": None, "answer": "", "deltas": 0}
    for chunk in client.chat.completions.create(**request(model, question), **options, **more):
        for choice in chunk.choices:
            thought = getattr(choice.delta, "reasoning_content", None)
            if thought:
                said["thought"] = (said["thought"] or "") + thought
                said["deltas"] += 1
            said["answer"] += choice.delta.content or ""
            said["finish"] = choice.finish_reason
        if chunk.usage:
            said["usage"] = chunk.usage.model_dump()
        if hasattr(chunk, "budget"):
            said["budget"] = chunk.budget
    return said


def error(client, model, question, **more):
    try:
        client.chat.completions.create(**request(model, question), **more)
    except openai.APIStatusError as error:
        return {
            "class": type(error).__name__, "status": error.status_code,
            "code": error.code, "param": error.param, "retry": error.response.headers.get("x-should-retry"),
        }
    return None


if __name__ == "__main__":
    main()
