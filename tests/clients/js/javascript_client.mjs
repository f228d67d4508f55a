// JavaScript's clients: a case each, of what people use most in them. One line of JSON a case, as in cases.py.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import { generateText, Output, stepCountIs, streamText, tool as aiTool } from "ai";
import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import OpenAI from "openai";
import { z } from "zod";

const { CLIENTS_BASE: base, CLIENTS_KEY: key } = process.env;
const root = base.replace(/\/v1$/, "");
const model = "starter";
const question = "It rains and the wind howls. What is the weather like?";
const weather = z.object({ sky: z.enum(["clear", "cloudy", "rainy"]), windy: z.boolean() });
const schema = z.toJSONSchema(weather);
const messages = [{ role: "user", content: question }];
const openai = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0 });

async function case_openai() {
  const asked = { model, messages, max_tokens: 8 };
  assert(await openai.chat.completions.create(asked).then((answer) => answer.choices[0].message.content));
  const stream = openai.chat.completions.stream(asked);
  assert(await stream.finalContent());
  const tools = [{ type: "function", function: { name: "tell_weather", parameters: schema } }];
  const called = await openai.chat.completions.create({ ...asked, max_tokens: 80, tools, tool_choice: "required" });
  weather.parse(JSON.parse(called.choices[0].message.tool_calls[0].function.arguments));
  const response = await openai.responses.create({ model, input: question, max_output_tokens: 8 });
  assert(response.output_text);
  const count = await openai.responses.inputTokens.count({ model, input: question });
  assert.equal(count.input_tokens, response.usage.input_tokens);
}

async function case_anthropic_tool_runner() {
  const client = new Anthropic({ baseURL: root, apiKey: key, maxRetries: 0 });
  const told = [];
  const tell = {
    name: "tell_weather", input_schema: schema, parse: (input) => weather.parse(input),
    run: (input) => (told.push(input), "told"),
  };
  const asked = { model, max_tokens: 60, messages, tools: [tell], tool_choice: { type: "any" }, max_iterations: 2 };
  const seen = [];
  for await (const message of client.beta.messages.toolRunner(asked)) seen.push(message.stop_reason);
  assert.equal(seen[0], "tool_use");
  assert(told.length);
}

async function case_langchain() {
  const chat = new ChatOpenAI({ model, maxTokens: 60, maxRetries: 0, configuration: { baseURL: base, apiKey: key }, apiKey: key });
  let text = "";
  for await (const chunk of await chat.stream("Say hello.", { stop: ["."] })) text += chunk.content;
  assert(text);
  for (const method of ["jsonSchema", "functionCalling"])
    weather.parse(await chat.withStructuredOutput(weather, { method, name: "weather" }).invoke(question));
}

async function case_openai_agents() {
  setTracingDisabled(true);
  const tell = tool({ name: "tell_weather", description: "Tells it.", parameters: weather, execute: () => "told" });
  for (const kind of [OpenAIResponsesModel, OpenAIChatCompletionsModel]) {
    const settings = { toolChoice: "required", maxTokens: 60 };
    const agent = new Agent({ name: "Teller", instructions: "Be brief.", model: new kind(openai, model),
      modelSettings: settings, tools: [tell], toolUseBehavior: "stop_on_first_tool" });
    assert.equal((await run(agent, question, { maxTurns: 2 })).finalOutput, "told");
  }
}

// The AI SDK over each of the server's APIs.
async function case_ai_sdk() {
  const ours = { baseURL: base, apiKey: key };
  const openaiOfAi = createOpenAI(ours);
  const models = [createOpenAICompatible({ ...ours, name: "draftlight", supportsStructuredOutputs: true })(model),
    openaiOfAi.chat(model), openaiOfAi.responses(model), createAnthropic(ours)(model)];
  for (const each of models) {
    const asked = { model: each, maxRetries: 0, maxOutputTokens: 80 };
    const { text, usage, finishReason } = await generateText({ ...asked, prompt: question, maxOutputTokens: 8 });
    assert(text && usage.outputTokens === 8 && finishReason === "length", `${each.provider}: ${finishReason}`);
    let streamed = "";
    const stream = streamText({ ...asked, prompt: question, maxOutputTokens: 8, onError: ({ error }) => { throw error; } });
    for await (const part of stream.textStream) streamed += part;
    assert(streamed, each.provider);
    const told = [];
    const tools = { tell_weather: aiTool({ description: "Tells it.", inputSchema: weather,
      execute: (input) => (told.push(weather.parse(input)), "told") }) };
    const called = await generateText({ ...asked, prompt: question, tools, toolChoice: "required", stopWhen: stepCountIs(2) });
    assert(told.length && called.steps[0].finishReason === "tool-calls", each.provider);
    const formed = await generateText({ ...asked, prompt: question, output: Output.object({ schema: weather }) });
    weather.parse(formed.output);
  }
}

// A PNG of 40 x 24 pixels, of which the model that sees makes 15 rows; two tokens are around them.
function image() {
  const crc = (data) => {
    let sum = ~0;
    for (const byte of data) for (let bit = (sum ^= byte, 0); bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
    return ~sum >>> 0;
  };
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]), ends = [Buffer.alloc(4), Buffer.alloc(4)];
    ends[0].writeUInt32BE(data.length), ends[1].writeUInt32BE(crc(body));
    return Buffer.concat([ends[0], body, ends[1]]);
  };
  const head = Buffer.from([0, 0, 0, 40, 0, 0, 0, 24, 8, 2, 0, 0, 0]);
  const row = Buffer.from([0, ...Array(120).keys()]);
  const rows = deflateSync(Buffer.concat(Array(24).fill(row)));
  const start = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([start, chunk("IHDR", head), chunk("IDAT", rows), chunk("IEND", Buffer.alloc(0))]);
}
const sees = process.env.CLIENTS_SEES, words = "What is it?", more = 17;
const data = image().toString("base64"), url = `data:image/png;base64,${data}`;

async function case_openai_image() {
  const client = new OpenAI({ baseURL: sees, apiKey: key, maxRetries: 0 });
  const ask = (content) => client.chat.completions.create({ model: "sees", max_tokens: 4, messages: [{ role: "user", content }] });
  const parts = [{ type: "text", text: words }, { type: "image_url", image_url: { url } }];
  const [plain, seen] = [await ask(words), await ask(parts)];
  assert.equal(seen.usage.prompt_tokens, plain.usage.prompt_tokens + more);
  const content = [{ type: "input_text", text: words }, { type: "input_image", image_url: url, detail: "auto" }];
  const response = await client.responses.create({ model: "sees", max_output_tokens: 4, input: [{ role: "user", content }] });
  assert.equal(response.usage.input_tokens, seen.usage.prompt_tokens);
  await assert.rejects(openai.chat.completions.create({ model, messages: [{ role: "user", content: parts }] }),
    (error) => error.code === "model_does_not_see" && error.param === "messages[0].content[1]");
}

async function case_anthropic_image() {
  const client = new Anthropic({ baseURL: sees.replace(/\/v1$/, ""), apiKey: key, maxRetries: 0 });
  const block = { type: "image", source: { type: "base64", media_type: "image/png", data } };
  const count = async (content) => {
    const asked = { model: "sees", messages: [{ role: "user", content }] };
    const { usage } = await client.messages.create({ ...asked, max_tokens: 4 });
    const { input_tokens } = await client.messages.countTokens(asked);
    assert.equal(input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
    return input_tokens;
  };
  assert.equal(await count([block, { type: "text", text: words }]), (await count(words)) + more);
}

async function case_ai_sdk_image() {
  const ours = { baseURL: sees, apiKey: key };
  const openaiOfAi = createOpenAI(ours);
  const models = [createOpenAICompatible({ ...ours, name: "draftlight" })("sees"), openaiOfAi.chat("sees"),
    openaiOfAi.responses("sees"), createAnthropic(ours)("sees")];
  for (const each of models) {
    const count = async (content) => (await generateText({ model: each, maxRetries: 0, maxOutputTokens: 4,
      messages: [{ role: "user", content }] })).usage.inputTokens;
    const plain = await count(words);
    const parts = [{ type: "text", text: words }, { type: "image", image: image() }];
    assert.equal(await count(parts), plain + more, each.provider);
    await assert.rejects(count([{ type: "file", mediaType: "image/png", data: "bm8gaW1hZ2U=" }]), each.provider);
  }
}

for (const test of [case_openai_image, case_anthropic_image, case_ai_sdk_image, case_openai, case_ai_sdk, case_anthropic_tool_runner, case_langchain, case_openai_agents]) {
  let problem = "";
  try {
    await test();
  } catch (error) {
    problem = String(error.stack ?? error);
  }
  console.log(JSON.stringify({ case: test.name, problem }));
}
