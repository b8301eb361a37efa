"""The OpenAI Agents SDK, changed only in its client's base URL: an agent with a tool, whole and streamed.

    python agents_run.py BASE_URL KEY MODEL
"""

import asyncio
import json
import sys

from agents import Agent, ModelSettings, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

base, key, model = sys.argv[1:]
set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
called = []


@function_tool
def search(q: str) -> str:
    """Finds things."""
    called.append(q)
    return "a cat"


agent = Agent(
    name="finder",
    instructions="Use your tools.",
    model=OpenAIResponsesModel(model=model, openai_client=client),
    model_settings=ModelSettings(include_usage=True),
    tools=[search],
)


async def whole(**more):
    result = await Runner.run(agent, "Find it.", **more)
    return result, {"final": result.final_output, "kinds": [item.type for item in result.new_items]}


async def streamed(**more):
    result = Runner.run_streamed(agent, "Find it.", **more)
    seen = set()
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            seen.add(event.data.type)
    kinds = [item.type for item in result.new_items]
    return {"final": result.final_output, "kinds": kinds, "seen": sorted(seen)}


async def main():
    result, plain = await whole()
    usage = result.context_wrapper.usage
    # What was said so far is sent again, thoughts and calls among it.
    more = await Runner.run(agent, result.to_input_list() + [{"role": "user", "content": "And now?"}])
    followed = await Runner.run(agent, "And now?", previous_response_id=result.last_response_id)
    print(json.dumps({
        "whole": plain,
        "usage": [usage.requests, usage.input_tokens > 0, usage.output_tokens_details.reasoning_tokens],
        "more": more.final_output,
        "followed": followed.final_output,
        "chained": (await whole(auto_previous_response_id=True))[1],
        "streamed": await streamed(),
        "called": called,
    }))


asyncio.run(main())
