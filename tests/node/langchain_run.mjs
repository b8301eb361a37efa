// LangChain in Node with members that only servers of open models know, changed only in the base URL.
//
//     node langchain_run.mjs BASE_URL KEY MODEL

import { ChatOpenAI } from "@langchain/openai";

const [base, apiKey, model] = process.argv.slice(2);
const modelKwargs = { min_p: 0.05, repetition_penalty: 1.1, chat_template_kwargs: { language: "de" } };
const chat = new ChatOpenAI({
  model, apiKey, modelKwargs, logprobs: true, topLogprobs: 1, maxRetries: 0, configuration: { baseURL: `${base}/v1` },
});

const tokens = (message) => message.response_metadata.logprobs.content.map((entry) => entry.token);
const answer = await chat.invoke("Is it so?");
const streamed = [];
for await (const piece of await chat.stream("Is it so?")) streamed.push(piece.content);
console.log(JSON.stringify({ content: answer.content, tokens: tokens(answer), streamed: streamed.join("") }));
