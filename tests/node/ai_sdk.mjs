// Vercel's AI SDK by its providers for OpenAI (Responses and chat), for what is compatible with it, and for Anthropic, changed
// only in the base URL.
//
//     node ai_sdk.mjs BASE_URL KEY MODEL

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [base, key, name] = process.argv.slice(2);

// What is told beside an answer, where a provider lets one look.
const budget = {
  extractMetadata: async ({ parsedBody }) => ({ stint: { budget: parsedBody.budget } }),
  createStreamExtractor() {
    let told;
    return {
      processChunk: (chunk) => { told ??= chunk.budget; },
      buildMetadata: () => ({ stint: { budget: told } }),
    };
  },
};

function models(apiKey) {
  const at = { baseURL: `${base}/v1`, apiKey };
  const openai = createOpenAI(at);
  const more = { includeUsage: true, supportsStructuredOutputs: true, metadataExtractor: budget };
  return {
    responses: openai(name),
    chat: openai.chat(name),
    compatible: createOpenAICompatible({ name: "stint", ...at, ...more })(name),
    messages: createAnthropic(at)(name),
  };
}

const providerOptions = {
  openai: { forceReasoning: true, reasoningSummary: "auto" },
  anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } },
};
const weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sun in ${city}`,
});
const loop = { tools: { weather }, stopWhen: isStepCount(5), prompt: "The weather?" };
const city = Output.object({ schema: z.object({ name: z.string(), population: z.number() }) });

async function told(result) {
  const [text, thought, usage] = [await result.text, await result.reasoningText, await result.usage];
  return { text, thought: thought ?? null, written: usage.outputTokens };
}

async function stepped(result) {
  const steps = await result.steps;
  return { text: await result.text, calls: steps.map((step) => step.toolCalls.length) };
}

async function streamed(asked) {
  const result = streamText({ ...asked, onError({ error }) { throw error; } });
  await result.consumeStream();
  return result;
}

async function refused(asked) {
  try {
    await generateText({ ...asked, maxRetries: 0 });
  } catch (error) {
    return error.statusCode;
  }
}

const facts = {};
for (const [api, model] of Object.entries(models(key))) {
  const asked = { model, maxOutputTokens: 500, providerOptions };
  const plain = { ...asked, prompt: "Hello." };
  const said = { "x-episode-id": `run-${api}`, "x-budget-thinking-tokens": "2" };
  const own = { stint: { budget: { thinking_tokens: 2, episode: "run-compatible" } } };
  const budgeted = await generateText(
    api === "compatible" ? { ...plain, providerOptions: own } : { ...plain, headers: said });
  facts[api] = {
    plain: await told(await generateText(plain)),
    streamed: await told(await streamed(plain)),
    loop: await stepped(await generateText({ ...asked, ...loop })),
    loop_streamed: await stepped(await streamed({ ...asked, ...loop })),
    object: (await generateText({ ...plain, output: city })).output,
    refused: await refused({ ...plain, headers: { "x-budget-thinking-tokens": "many" } }),
    spent: await refused({ ...plain, model: models("sk-poor")[api] }),
    budget: budgeted.providerMetadata?.stint?.budget,
  };
}
console.log(JSON.stringify(facts));
