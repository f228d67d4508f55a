// JavaScript's clients: a case each, of what people use most in them. One line of JSON a case, as in cases.py.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import { generateText, Output, stepCountIs, streamText, tool as aiTool } from "ai";
import assert from "node:assert/strict";
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

for (const test of [case_openai, case_ai_sdk, case_anthropic_tool_runner, case_langchain, case_openai_agents]) {
  let problem = "";
  try {
    await test();
  } catch (error) {
    problem = String(error.stack ?? error);
  }
  console.log(JSON.stringify({ case: test.name, problem }));
}
