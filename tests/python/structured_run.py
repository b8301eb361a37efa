"""Asks for answers of a certain form through the official SDKs, and checks each against its schema.

    python structured_run.py BASE_URL MODEL TOKENS < schemas.jsonl

Prints one JSON object: for every schema what came of it (`ok`, or what is wrong), then what the SDKs' own helpers made of theirs.
`tests/it/structured.rs` judges.
"""

import concurrent.futures
import json
import sys
import typing

import anthropic
import jsonschema
import openai
import pydantic

QUESTION = "Make up an example."


class Step(pydantic.BaseModel, extra="forbid"):
    explanation: typing.Literal["because", "since"]
    output: typing.Literal["yes", "no"]


class Reply(pydantic.BaseModel, extra="forbid"):
    steps: typing.Annotated[list[Step], pydantic.Field(max_length=2)]
    mood: typing.Literal["🙂", "🙁"]


def main():
    base, model, tokens = sys.argv[1:]
    cases = [json.loads(line) for line in sys.stdin]
    openly = openai.OpenAI(base_url=f"{base}/v1", api_key="sk-test", max_retries=0, timeout=600)
    other = anthropic.Anthropic(base_url=base, api_key="sk-test", max_retries=0, timeout=600)
    asking = Asking(openly, other, model, int(tokens))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        checked = list(pool.map(lambda case: asking.check(*case), enumerate(cases)))
    print(json.dumps({
        "checked": [{"name": case["name"], "result": result} for case, result in zip(cases, checked)],
        "parsed": asking.parsed(),
        "responded": asking.responded(),
        "messaged": asking.messaged(),
        "object": asking.any_object(),
    }))


class Asking:
    """One model, asked in every way there is."""

    def __init__(self, openly, other, model, tokens):
        self.openly, self.other, self.model, self.tokens = openly, other, model, tokens

    def check(self, at, case):
        """Every second answer is streamed, and every third is drawn, in every run the same one."""
        schema = {"name": "answer", "strict": True, "schema": case["schema"]}
        said = self.chat({"type": "json_schema", "json_schema": schema}, streamed=at % 2 == 1, drawn_by=at if at % 3 == 2 else None)
        return verdict(said, case["schema"])

    def chat(self, form, streamed, drawn_by=None):
        options = {
            "model": self.model,
            "messages": [{"role": "user", "content": QUESTION}],
            "response_format": form,
            "max_completion_tokens": self.tokens,
            "temperature": 0,
            "reasoning_effort": "none",
        }
        if drawn_by is not None:
            options |= {"temperature": 1, "seed": drawn_by}
        if not streamed:
            [choice] = self.openly.chat.completions.create(**options).choices
            return choice.message.content, choice.finish_reason
        text, finish = "", None
        for chunk in self.openly.chat.completions.create(stream=True, **options):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
        return text, finish

    def any_object(self):
        """Any object will do, so it may be long: what is there must at least be the beginning of one."""
        text, finish = self.chat({"type": "json_object"}, streamed=False)
        return text.startswith("{") and (finish == "length" or isinstance(json.loads(text), dict))

    def parsed(self):
        answer = self.openly.chat.completions.parse(
            model=self.model, messages=[{"role": "user", "content": QUESTION}], response_format=Reply,
            max_completion_tokens=self.tokens, temperature=0, reasoning_effort="none")
        return isinstance(answer.choices[0].message.parsed, Reply)

    def responded(self):
        answer = self.openly.responses.parse(
            model=self.model, input=QUESTION, text_format=Reply, max_output_tokens=self.tokens, temperature=0,
            reasoning={"effort": "none"})
        return isinstance(answer.output_parsed, Reply)

    def messaged(self):
        schema = Reply.model_json_schema()
        answer = self.other.messages.create(
            model=self.model, messages=[{"role": "user", "content": QUESTION}], max_tokens=self.tokens,
            extra_body={"output_config": {"format": {"type": "json_schema", "schema": schema}}, "temperature": 0})
        text = "".join(block.text for block in answer.content if block.type == "text")
        return isinstance(Reply.model_validate_json(text), Reply)


def verdict(said, schema):
    text, finish = said
    if finish != "stop":
        return f"ended by {finish}: {text}"
    try:
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{text}: {error}"
    return "ok"


main()
