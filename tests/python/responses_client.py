"""OpenAI's own SDK against one address, by its Responses: an answer, a run with a tool, two refusals."""

import json
import sys

import openai

base, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=base, api_key=key, max_retries=0)
model = "gpt-reasoner"
search = {
    "type": "function",
    "name": "search",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    "strict": False,
}
usage = []


def ask(items, **more):
    with client.responses.stream(
        model=model,
        input=items,
        store=False,
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "high", "summary": "auto"},
        **more,
    ) as stream:
        response = stream.get_final_response()
    usage.append([response.usage.input_tokens, response.usage.output_tokens])
    return response


def refused(client, **more):
    try:
        client.responses.create(**{"model": model, "input": question, "store": False, **more})
    except openai.APIStatusError as error:
        return type(error).__name__
    return None


question = [{"role": "user", "content": "What is 12+34+5?"}]
answer = ask(question)
first = ask(question, tools=[search])
reasoning, call = first.output[0], first.output[-1]
# As it came on the wire: without the members that only the SDK's class has.
turn = [
    reasoning.model_dump(include={"type", "id", "summary", "encrypted_content"}),
    {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
    {"type": "function_call_output", "call_id": call.call_id, "output": "a cat"},
]
last = ask([*question, *turn], tools=[search])

print(
    json.dumps(
        {
            "thought": answer.output[0].summary[0].text,
            "answer": answer.output_text,
            "tool": [call.name, json.loads(call.arguments)],
            "last": last.output_text,
            "usage": usage,
            "refused": [
                refused(client, max_output_tokens=1),
                refused(openai.OpenAI(base_url=base, api_key="another", max_retries=0)),
            ],
        }
    )
)
