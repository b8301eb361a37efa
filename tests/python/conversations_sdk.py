"""OpenAI's own SDK on conversations, and its Agents SDK on top of them, changed only in the base URL; prints what came of it.

    python conversations_sdk.py BASE_URL KEY OTHER_KEY MODEL
"""

import asyncio
import json
import sys

import openai
from agents import (
    Agent,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)

base, key, other, model = sys.argv[1:]
client = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
stranger = client.with_options(api_key=other)
hello = {"type": "message", "role": "user", "content": "Hello."}


def error(call):
    try:
        call()
    except openai.APIStatusError as error:
        return [error.status_code, error.code, error.param]
    return None


def kinds(conversation, **asked):
    return [item.type for item in client.conversations.items.list(conversation, **asked)]


def objects():
    """Made, read, described, deleted."""
    made = client.conversations.create(metadata={"topic": "demo"}, items=[hello])
    again = client.conversations.retrieve(made.id)
    described = client.conversations.update(made.id, metadata={"topic": "more"})
    gone = client.conversations.delete(made.id)
    return {
        "made": [made.object, made.metadata, made.id[:5], made.created_at > 0],
        "again": again == made,
        "described": [described.id == made.id, described.metadata],
        "deleted": [gone.id == made.id, gone.object, gone.deleted],
        "gone": error(lambda: client.conversations.retrieve(made.id)),
    }


def items():
    """Added, read in pages, removed."""
    id = client.conversations.create().id
    added = client.conversations.items.create(id, items=[{**hello, "content": f"Number {n}."} for n in range(20)])
    client.conversations.items.create(id, items=[{**hello, "content": f"Number {n}."} for n in range(20, 45)][:20])
    listed = [item.content[0].text for item in client.conversations.items.list(id, order="asc", limit=7)]
    latest = client.conversations.items.list(id, limit=2)
    first = added.data[0]
    one = client.conversations.items.retrieve(first.id, conversation_id=id)
    client.conversations.items.delete(first.id, conversation_id=id)
    return {
        "added": [len(added.data), added.object, added.first_id == first.id],
        "listed": listed == [f"Number {n}." for n in range(40)],
        "latest": [[item.content[0].text for item in latest.data], latest.has_more],
        "one": one == first,
        "left": len(list(client.conversations.items.list(id, limit=100))),
        "gone": error(lambda: client.conversations.items.retrieve(first.id, conversation_id=id)),
        "many": error(lambda: client.conversations.items.create(id, items=[hello] * 21)),
        "wrong": error(lambda: client.conversations.items.create(id, items=[{"type": "web_search_call"}])),
    }


def talk():
    """Responses that go on from it and lengthen it."""
    id = client.conversations.create(items=[hello]).id
    whole = client.responses.create(model=model, conversation=id, input="One.")
    with client.responses.stream(model=model, conversation={"id": id}, input="Two.") as stream:
        list(stream)
        streamed = stream.get_final_response()
    unkept = client.responses.create(model=model, conversation=id, input="Three.", store=False)
    latest = client.conversations.items.list(id, limit=1).data[0]
    reference = [{"type": "item_reference", "id": latest.id}]
    again = client.responses.retrieve(whole.id)
    return {
        "texts": [whole.output_text, streamed.output_text, unkept.output_text],
        "named": [whole.conversation.id == id, streamed.conversation.id == id, again.conversation.id == id],
        "kinds": kinds(id, order="asc"),
        "referred": client.responses.create(model=model, conversation=id, input=reference).output_text,
        "both": error(
            lambda: client.responses.create(
                model=model, conversation=id, previous_response_id=whole.id, input="x"
            )
        ),
        "within": error(lambda: client.responses.create(model=model, previous_response_id=whole.id, input="x")),
        "stranger": [
            error(lambda: stranger.responses.create(model=model, conversation=id, input="x")),
            error(lambda: stranger.conversations.retrieve(id)),
            error(lambda: stranger.conversations.items.list(id)),
            error(lambda: stranger.conversations.delete(id)),
        ],
    }


@function_tool
def search(q: str) -> str:
    """Finds things."""
    return "a cat"


async def agent():
    """An agent whose memory is a conversation, in both of the ways that the Agents SDK has."""
    set_tracing_disabled(True)
    theirs = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
    seeker = Agent(
        name="seeker", model=OpenAIResponsesModel(model=model, openai_client=theirs), tools=[search]
    )
    id = client.conversations.create().id
    ran = await Runner.run(seeker, "Find it.", conversation_id=id)
    streamed = Runner.run_streamed(seeker, "And?", conversation_id=id)
    async for _ in streamed.stream_events():
        pass
    session = OpenAIConversationsSession(openai_client=theirs)
    first = await Runner.run(seeker, "Find it.", session=session)
    second = await Runner.run(seeker, "And?", session=session)
    popped = await session.pop_item()
    left = await session.get_items()
    facts = {
        "ran": ran.final_output,
        "streamed": streamed.final_output,
        "kinds": kinds(id, order="asc"),
        "session": [first.final_output, second.final_output],
        "popped": popped["type"],
        "left": [item.get("type") for item in left],
    }
    await session.clear_session()
    return facts


print(json.dumps({"objects": objects(), "items": items(), "talk": talk(), "agent": asyncio.run(agent())}))
