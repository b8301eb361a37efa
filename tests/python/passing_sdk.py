"""Talks to a gateway through OpenAI's own SDK with members that only some servers know, and prints what came of it.

    python passing_sdk.py BASE_URL MODEL
"""

import json
import sys

import openai

MORE = {
    "min_p": 0.05,
    "repetition_penalty": 1.1,
    "chat_template_kwargs": {"enable_thinking": False, "language": "de"},
    "guided_json": {"type": "object"},
}


def main():
    base, model = sys.argv[1:]
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-test")
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": "Is it so?"}],
        "logprobs": True,
        "top_logprobs": 1,
        "extra_body": MORE,
    }
    [choice] = client.chat.completions.create(**asked).choices
    streamed = []
    for chunk in client.chat.completions.create(**asked, stream=True):
        for part in chunk.choices:
            streamed += [entry.token for entry in (part.logprobs.content or [])] if part.logprobs else []
    print(json.dumps({
        "content": choice.message.content,
        "tokens": [entry.token for entry in choice.logprobs.content],
        "streamed": streamed,
    }))


if __name__ == "__main__":
    main()
