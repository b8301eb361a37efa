"""Talks to a gateway through LiteLLM's client, changed only in the base URL, and prints what came of it.

    python litellm_client.py BASE_URL KEY MODEL
"""

import json
import os
import sys

# Nothing is fetched from anywhere else.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402

litellm.telemetry = False
litellm.suppress_debug_info = True
litellm.num_retries = 0


def main():
    base, key, model = sys.argv[1:]
    common = {
        "model": f"openai/{model}",
        "api_base": f"{base}/v1",
        "api_key": key,
        "messages": [{"role": "user", "content": "12+30*4?"}],
        "extra_body": {"budget": {"thinking_tokens": 16, "solution_tokens": 16}},
    }
    whole = litellm.completion(**common)
    chunks = list(litellm.completion(**common, stream=True, stream_options={"include_usage": True}))
    built = litellm.stream_chunk_builder(chunks)
    print(json.dumps({
        "whole": told(whole),
        "streamed": told(built),
        "missing": error(lambda: litellm.completion(**{**common, "model": "openai/no-such-model"})),
        "unpaid": error(lambda: litellm.completion(**{**common, "api_key": "sk-nobody"})),
    }))


def told(answer):
    message = answer.choices[0].message
    return {
        "content": message.content,
        "thought": getattr(message, "reasoning_content", None),
        "finish": answer.choices[0].finish_reason,
        "completion": answer.usage.completion_tokens,
        "thinking": answer.usage.completion_tokens_details.reasoning_tokens,
    }


def error(ask):
    try:
        ask()
    except Exception as refused:  # noqa: BLE001
        return type(refused).__name__
    return None


if __name__ == "__main__":
    main()
