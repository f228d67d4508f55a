// JavaScript's clients: a case each, of what people use most in them. One line of JSON a case, as in cases.py.
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
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

for (const test of [case_openai, case_anthropic_tool_runner, case_langchain, case_openai_agents]) {
  let problem = "";
  try {
    await test();
  } catch (error) {
    problem = String(error.stack ?? error);
  }
  console.log(JSON.stringify({ case: test.name, problem }));
}
