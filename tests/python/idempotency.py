"""Repeats requests through OpenAI's own SDK, with an idempotency key and without, and prints what came of it.

    python idempotency.py BASE_URL

`tests/it/idempotency.rs` judges. The key is that of its tenant `a`.
"""

import json
import sys

import openai


def main():
    client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="sk-a")
    first, again = (raw(client, "plain", "1+2?") for _ in range(2))
    print(json.dumps({
        "first": first.text,
        "again": again.text,
        "replayed": [said.headers.get("idempotent-replayed") for said in (first, again)],
        "other": error(lambda: raw(client, "plain", "1+3?")),
        "stream": [streamed(client, "stream"), error(lambda: streamed(client, "stream"))],
        "without": client.chat.completions.create(**request("1+2?")).choices[0].message.content,
    }))


def request(question):
    budget = {"thinking_tokens": 8, "solution_tokens": 8}
    return {"model": "m", "messages": [{"role": "user", "content": question}], "extra_body": {"budget": budget}}


def raw(client, key, question):
    create = client.chat.completions.with_raw_response.create
    return create(**request(question), extra_headers={"Idempotency-Key": key})


def streamed(client, key):
    headers = {"Idempotency-Key": key}
    chunks = client.chat.completions.create(**request("1+2?"), stream=True, extra_headers=headers)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def error(ask):
    try:
        ask()
    except openai.APIStatusError as refused:
        return {"class": type(refused).__name__, "code": refused.code}
    return None


if __name__ == "__main__":
    main()
