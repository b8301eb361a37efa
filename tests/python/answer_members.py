"""Reads answers through the official SDKs, and prints what they made of them.

    python answer_members.py chat|messages BASE_URL
"""

import json
import sys

import anthropic
import openai

QUESTION = [{"role": "user", "content": "What is 1+2?"}]


def told(completion):
    usage, choice = completion.usage, completion.choices[0]
    return {
        "service_tier": completion.service_tier,
        "citations": completion.model_extra.get("citations"),
        "finish": choice.finish_reason,
        "native": choice.model_extra.get("native_finish_reason"),
        "audio_tokens": [usage.prompt_tokens_details.audio_tokens, usage.completion_tokens_details.audio_tokens],
        "accepted": usage.completion_tokens_details.accepted_prediction_tokens,
        "rejected": usage.completion_tokens_details.rejected_prediction_tokens,
        "cost": usage.model_extra.get("cost"),
    }


def chat(base):
    client = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-key", max_retries=0)
    asked = {"model": "m", "messages": QUESTION, "max_tokens": 20}
    whole = client.chat.completions.create(**asked)
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options=options))
    last = next(chunk for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason)
    last.usage = chunks[-1].usage
    with client.chat.completions.stream(**asked, stream_options=options) as stream:
        stream.until_done()
        helped = stream.get_final_completion()
    return {
        "whole": told(whole),
        "streamed": told(last),
        "helped": [helped.choices[0].message.content, helped.choices[0].message.refusal],
        "refusal": whole.choices[0].message.refusal,
    }


def messages(base):
    client = anthropic.Anthropic(base_url=base, api_key="sk-key", max_retries=0)
    asked = {"model": "m", "messages": QUESTION, "max_tokens": 20}

    def read(message):
        details = message.stop_details
        return {
            "stop": message.stop_reason,
            "details": [details.category, details.explanation] if details else None,
            "text": "".join(block.text for block in message.content),
            "output": message.usage.output_tokens,
        }

    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    return {"whole": read(whole), "streamed": read(streamed), "tier": whole.usage.service_tier}


if __name__ == "__main__":
    kind, base = sys.argv[1:]
    print(json.dumps({"chat": chat, "messages": messages}[kind](base)))
