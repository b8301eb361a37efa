// Talks to a gateway through OpenAI's own SDK, changed only in the base URL, and prints what came of it.
//
//     node official_sdk.mjs BASE_URL MODEL < problems.jsonl
//
// The keys are those of `tests/it/sdk.rs`, which judges; `tests/python/official_sdk.py` does the same in Python.

import { readFileSync } from "node:fs";
import OpenAI from "openai";

const CUT = { budget: { thinking_tokens: 8 } };

const [base, model] = process.argv.slice(2);
const lines = readFileSync(0, "utf8").trim().split("\n");
const questions = lines.map((line) => JSON.parse(line).question);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "sk-test" });

const request = (question) => ({ model, messages: [{ role: "user", content: question }], temperature: 0 });

async function whole(question, more = {}) {
  const answer = await client.chat.completions.create({ ...request(question), ...more });
  const [choice] = answer.choices;
  const { reasoning_content: thought = null, content } = choice.message;
  return { thought, answer: content, finish: choice.finish_reason, usage: answer.usage, budget: answer.budget };
}

// The same shape, put together from the chunks.
async function streamed(question, more = {}) {
  const options = { stream: true, stream_options: { include_usage: true } };
  const said = { thought: null, answer: "", deltas: 0 };
  for await (const chunk of await client.chat.completions.create({ ...request(question), ...options, ...more })) {
    for (const { delta, finish_reason } of chunk.choices) {
      if (delta.reasoning_content) {
        said.thought = (said.thought ?? "") + delta.reasoning_content;
        said.deltas += 1;
      }
      said.answer += delta.content ?? "";
      said.finish = finish_reason;
    }
    said.usage = chunk.usage ?? said.usage;
    said.budget = chunk.budget ?? said.budget;
  }
  return said;
}

async function error(more = {}, apiKey = "sk-test") {
  try {
    await client.withOptions({ apiKey }).chat.completions.create({ ...request(questions[0]), ...more });
  } catch (error) {
    const { status, code, param, headers } = error;
    return { class: error.constructor.name, status, code, param, retry: headers.get("x-should-retry") };
  }
  return null;
}

async function each(ask, more) {
  const answers = [];
  for (const question of questions) answers.push(await ask(question, more));
  return answers;
}

const models = [];
for await (const listed of client.models.list()) models.push(listed.id);
console.log(JSON.stringify({
  models,
  plain: await each(whole),
  cut: await each(whole, CUT),
  plain_streamed: await each(streamed),
  cut_streamed: await each(streamed, CUT),
  errors: {
    model: await error({ model: "nobody" }),
    budget: await error({ budget: { thinking_tokens: -1 } }),
    key: await error({}, "sk-wrong"),
    spent: await error({}, "sk-poor"),
  },
}));
