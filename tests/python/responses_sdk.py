"""OpenAI's own SDK on Responses, changed only in the base URL, and prints what came of it.

    python responses_sdk.py BASE_URL KEY OTHER_KEY MODEL
"""

import json
import sys

import openai
from pydantic import BaseModel

base, key, other, model = sys.argv[1:]
client = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
stranger = client.with_options(api_key=other)
search = {
    "type": "function",
    "name": "search",
    "description": "Finds things.",
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    },
    "strict": True,
}
patch = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Changes files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}


class Sum(BaseModel):
    sum: int


def bare(model):
    """As it came over the wire, without what the SDK adds when it parses."""

    def strip(value):
        if isinstance(value, dict):
            return {key: strip(inner) for key, inner in value.items() if key not in ("parsed", "parsed_arguments")}
        return [strip(inner) for inner in value] if isinstance(value, list) else value

    return strip(model.to_dict())


def plain(response):
    """What can be compared of a response: without its ids and times."""
    return {
        "kinds": [item.type for item in response.output],
        "text": response.output_text,
        "status": response.status,
        "incomplete": response.incomplete_details and response.incomplete_details.reason,
        "usage": response.usage.model_dump(exclude_none=True),
        "thinking": response.budget["thinking"],
        "store": response.store,
    }


def thought(response):
    item = response.output[0]
    return {
        "content": [part.text for part in item.content or []],
        "summary": [part.text for part in item.summary],
        "encrypted": item.encrypted_content,
    }


def streamed(**asked):
    with client.responses.stream(model=model, **asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == final.output_text
    items = [event.item for event in events if event.type == "response.output_item.done"]
    assert [bare(item) for item in items] == [bare(item) for item in final.output], (items, final.output)
    seen = []
    for event in events:
        if not seen or seen[-1] != event.type:
            seen.append(event.type)
    return seen, final


def error(client, **asked):
    try:
        client.responses.create(model=model, **asked)
    except openai.APIStatusError as error:
        return {"class": type(error).__name__, "code": error.code, "param": error.param}
    return None


def gone(client, id):
    try:
        client.responses.retrieve(id)
    except openai.NotFoundError as error:
        return error.code
    return None


def loop(stream):
    """A question, a call, and the answer from what the tool gave back, by the id of the response before."""
    asked = {"input": "Find it.", "tools": [search], "instructions": "Be brief."}
    first = streamed(**asked)[1] if stream else client.responses.create(model=model, **asked)
    call = first.output[-1]
    found = {"type": "function_call_output", "call_id": call.call_id, "output": "a cat"}
    asked = {"input": [found], "tools": [search], "previous_response_id": first.id}
    last = streamed(**asked)[1] if stream else client.responses.create(model=model, **asked)
    return {"call": [call.type, call.name, json.loads(call.arguments)], "last": last.output_text}


def stateless():
    """The same, with everything sent again, thoughts among it, and a tool of plain text."""
    turns = [{"role": "user", "content": [{"type": "input_text", "text": "Find it."}]}]
    asked = {"store": False, "include": ["reasoning.encrypted_content"], "tools": [patch], "parallel_tool_calls": False}
    seen, first = streamed(input=turns, **asked)
    call = first.output[-1]
    turns += [item.to_dict() for item in first.output]
    turns.append({"type": "custom_tool_call_output", "call_id": call.call_id, "output": "a cat"})
    last = client.responses.create(model=model, input=turns, **asked)
    return {"seen": seen, "call": [call.type, call.name, call.input], "last": last.output_text, "store": first.store}


question = {"input": "What is 1+2?", "metadata": {"run": "7"}, "temperature": 0}
whole = client.responses.create(model=model, **question)
seen, final = streamed(**question)
summarised_seen, summarised = streamed(reasoning={"summary": "auto", "effort": "high"}, **question)
again = client.responses.retrieve(whole.id)
items = client.responses.input_items.list(whole.id)
referred = client.responses.create(
    model=model, input=[{"type": "item_reference", "id": whole.output[-1].id}, {"role": "user", "content": "And?"}]
)
kept = client.responses.create(model=model, input="Once.")
client.responses.delete(kept.id)
print(json.dumps({
    "whole": plain(whole),
    "streamed": plain(final),
    "thought": thought(whole),
    "summary": thought(summarised),
    "seen": seen,
    "summary_seen": summarised_seen,
    "again": again.to_dict() == whole.to_dict(),
    "again_streamed": bare(client.responses.retrieve(final.id)) == bare(final),
    "echo": [whole.metadata, whole.temperature, whole.tool_choice, whole.parallel_tool_calls, whole.text.format.type],
    "items": [[item.type, item.role, item.content[0].text] for item in items],
    "referred": referred.output_text,
    "parsed": client.responses.parse(model=model, input="Sum it.", text_format=Sum).output_parsed.sum,
    "short": plain(client.responses.create(model=model, input="Long.", max_output_tokens=40)),
    "loop": loop(False),
    "loop_streamed": loop(True),
    "stateless": stateless(),
    "gone": gone(client, kept.id),
    "strange": gone(stranger, whole.id),
    "errors": {
        "previous": error(client, input="x", previous_response_id=kept.id),
        "stranger": error(stranger, input="x", previous_response_id=whole.id),
        "built_in": error(client, input="x", tools=[{"type": "web_search"}]),
        "background": error(client, input="x", background=True),
        "budget": error(client, input="x", extra_body={"budget": {"thinking_tokens": -1}}),
        "key": error(client.with_options(api_key="sk-wrong"), input="x"),
    },
}))
