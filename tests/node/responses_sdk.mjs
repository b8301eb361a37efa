// OpenAI's own SDK on Responses, changed only in the base URL, and prints what came of it.
//
//     node responses_sdk.mjs BASE_URL KEY MODEL

import OpenAI from "openai";

const [base, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey, maxRetries: 0 });
const parameters = { type: "object", properties: { q: { type: "string" } }, required: ["q"], additionalProperties: false };
const search = { type: "function", name: "search", parameters, strict: true };

async function streamed(asked) {
  const stream = client.responses.stream({ model, ...asked });
  const seen = [];
  for await (const event of stream) if (seen.at(-1) !== event.type) seen.push(event.type);
  return { seen, final: await stream.finalResponse() };
}

async function loop(ask) {
  const first = await ask({ input: "Find it.", tools: [search] });
  const call = first.output.at(-1);
  const found = { type: "function_call_output", call_id: call.call_id, output: "a cat" };
  const last = await ask({ input: [found], tools: [search], previous_response_id: first.id });
  return { call: [call.type, call.name, JSON.parse(call.arguments)], last: last.output_text };
}

const create = (asked) => client.responses.create({ model, ...asked });
const whole = await create({ input: "What is 1+2?" });
const { seen, final } = await streamed({ input: "What is 1+2?" });
const again = await client.responses.retrieve(whole.id);
await client.responses.delete(whole.id);
let gone = null;
try {
  await client.responses.retrieve(whole.id);
} catch (error) {
  gone = error.code;
}
let broken = null;
try {
  for await (const _ of await create({ input: "Break.", stream: true }));
} catch (error) {
  broken = [error.constructor.name, error.code];
}
console.log(JSON.stringify({
  kinds: whole.output.map((item) => item.type),
  text: whole.output_text,
  streamed: [final.output.map((item) => item.type), final.output_text, final.status],
  seen,
  again: again.output_text,
  loop: await loop(create),
  loop_streamed: await loop(async (asked) => (await streamed(asked)).final),
  gone,
  broken,
}));
