"""Asks for embeddings and older completions through OpenAI's own SDK, and prints what came of it.

    python endpoints.py BASE_URL

`tests/it/endpoints.rs` judges. The key is that of its tenant `rich`.
"""

import json
import sys

import openai


def main():
    client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="sk-rich", max_retries=0)
    made = client.embeddings.create(model="vectors", input=["one", "two"], dimensions=2)
    whole = client.completions.create(model="text", prompt="Once upon", max_tokens=8)
    stream = client.completions.create(
        model="text", prompt="Once upon", max_tokens=8, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    print(json.dumps({
        "vectors": [item.embedding for item in made.data],
        "embedding_tokens": made.usage.prompt_tokens,
        "text": whole.choices[0].text,
        "finish": whole.choices[0].finish_reason,
        "completion_tokens": whole.usage.completion_tokens,
        "streamed": "".join(chunk.choices[0].text for chunk in chunks if chunk.choices),
        "streamed_tokens": chunks[-1].usage.completion_tokens,
    }))


if __name__ == "__main__":
    main()
