"""Pydantic AI by OpenAI's Responses and chat completions and by Anthropic's Messages, changed only in the base URL: answers, an
agent with a tool, and an answer of a given form.

    pydantic_ai_run.py BASE_URL KEY MODEL
"""

import asyncio
import json
import sys

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

base, key, name = sys.argv[1:]


class City(BaseModel):
    name: str
    population: int


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sun in {city}"


def responses(key=key):
    return OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=f"{base}/v1", api_key=key))


def chat(key=key):
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=f"{base}/v1", api_key=key))


def messages(key=key):
    # Of a name that it does not know it does not know either what the model can.
    can = ModelProfile(supports_json_schema_output=True)
    return AnthropicModel(name, provider=AnthropicProvider(base_url=base, api_key=key), profile=can)


SETTINGS = {
    "responses": {"openai_reasoning_summary": "auto"},
    "chat": {},
    "messages": {"max_tokens": 2000, "anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}},
}


def parts(said, kind):
    return [part for message in said if isinstance(message, ModelResponse) for part in message.parts
            if isinstance(part, kind)]


def told(result):
    said = result.new_messages()
    text = "".join(part.content for part in parts(said, TextPart))
    thought = "".join(part.content for part in parts(said, ThinkingPart))
    return {"text": text, "thought": thought or None, "written": result.usage.output_tokens}


def run(result):
    said = [message for message in result.new_messages() if isinstance(message, ModelResponse)]
    return {"text": result.output, "calls": [len(parts([message], ToolCallPart)) for message in said]}


async def streamed(agent, question):
    """Every answer of the run as events."""
    async with agent.run_stream_events(question) as events:
        async for event in events:
            last = event
    return last.result


async def refused(model, settings, headers):
    try:
        await Agent(model).run("Hello.", model_settings={**settings, "extra_headers": headers})
    except Exception as error:
        return error.status_code


async def facts(make):
    api = make.__name__
    settings = SETTINGS[api]
    agent = Agent(make(), model_settings=settings)
    able = Agent(make(), tools=[weather], model_settings=settings)
    said = {"budget": {"thinking_tokens": 2, "episode": f"run-{api}"}}
    await agent.run("Hello.", model_settings={**settings, "extra_body": said})
    formed = Agent(make(), output_type=NativeOutput(City), model_settings=settings)
    return {
        "plain": told(await agent.run("Hello.")),
        "streamed": told(await streamed(agent, "Hello.")),
        "loop": run(await able.run("The weather?")),
        "loop_streamed": run(await streamed(able, "The weather?")),
        "object": (await formed.run("A city.")).output.model_dump(),
        "refused": await refused(make(), settings, {"x-budget-thinking-tokens": "many"}),
        "spent": await refused(make("sk-poor"), settings, {}),
    }


async def main():
    print(json.dumps({make.__name__: await facts(make) for make in (responses, chat, messages)}))


asyncio.run(main())
