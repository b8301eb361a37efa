"""LangChain by OpenAI's Responses and chat completions and by Anthropic's Messages, changed only in the base URL: answers, an
agent of LangGraph with a tool, and an answer of a given form.

    langchain_run.py BASE_URL KEY MODEL
"""

import json
import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

base, key, name = sys.argv[1:]


class City(BaseModel):
    """A city."""

    name: str
    population: int


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sun in {city}"


def responses(key=key, **more):
    summary = {"summary": "auto"}
    return ChatOpenAI(
        model=name, base_url=f"{base}/v1", api_key=key, use_responses_api=True, reasoning=summary, **more)


def chat(key=key, **more):
    return ChatOpenAI(model=name, base_url=f"{base}/v1", api_key=key, stream_usage=True, **more)


def messages(key=key, **more):
    thought = {"type": "enabled", "budget_tokens": 1024}
    return ChatAnthropic(model=name, base_url=base, api_key=key, max_tokens=2000, thinking=thought, **more)


def told(message):
    thoughts = [block.get("reasoning", "") for block in message.content_blocks if block["type"] == "reasoning"]
    written = message.usage_metadata["output_tokens"]
    return {"text": str(message.text), "thought": "".join(thoughts) or None, "written": written}


def streamed(model):
    whole = None
    for chunk in model.stream("Hello."):
        whole = chunk if whole is None else whole + chunk
    return told(whole)


def run(model):
    said = create_agent(model, [weather]).invoke({"messages": [("user", "The weather?")]})["messages"]
    calls = [len(message.tool_calls) for message in said if message.type == "ai"]
    return {"text": str(said[-1].text), "calls": calls}


def refused(model):
    try:
        model.invoke("Hello.")
    except Exception as error:
        return error.status_code


def facts(api, make):
    said = {"thinking_tokens": 2, "episode": f"run-{api}"}
    own = {"model_kwargs": {"extra_body": {"budget": said}}} if api == "messages" else {"extra_body": {"budget": said}}
    budgeted = make(**own).invoke("Hello.")
    wrong = {"default_headers": {"x-budget-thinking-tokens": "many"}}
    facts = {
        "plain": told(make().invoke("Hello.")),
        "streamed": streamed(make()),
        "loop": run(make()),
        "loop_streamed": run(make(streaming=True)),
        "object": make().with_structured_output(City, method="json_schema").invoke("A city.").model_dump(),
        "refused": refused(make(**wrong)),
        "spent": refused(make(key="sk-poor")),
    }
    if api == "messages":
        facts["budget"] = budgeted.response_metadata["budget"]
    return facts


print(json.dumps({make.__name__: facts(make.__name__, make) for make in (responses, chat, messages)}))
