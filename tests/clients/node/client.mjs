// Drives chat completions of the npm package `openai` for tests/integration/test_openai_node.py and test_openai_vendors.py.
// In: the base URL as an argument; cases {name, model, kind, retries, tools}. Out: see cases.mjs; usage is the vendor's.
import OpenAI from "openai";
import { runCases } from "./cases.mjs";

const ASK = [{ role: "user", content: "سلام" }];
const TOOLS = [
  {
    type: "function",
    function: {
      name: "weather",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
];

const callOf = (call) => [call.id, call.function.name, call.function.arguments];
// Not a field of the package's types: applications read it from what is beside them.
const reasoningIn = (message) => message.reasoning_content ?? message.reasoning ?? "";

const KINDS = {
  async streamed(client, params, seen) {
    const stream = await client.chat.completions.create({
      ...params,
      stream: true,
      stream_options: { include_usage: true },
    });
    const calls = [];
    for await (const chunk of stream) {
      seen.usage = chunk.usage ?? seen.usage;
      for (const { delta, finish_reason } of chunk.choices.filter((choice) => choice.index === 0)) {
        seen.text += delta.content ?? "";
        seen.refusal += delta.refusal ?? "";
        seen.reasoning += reasoningIn(delta);
        seen.finish = finish_reason ?? seen.finish;
        for (const { index, id, function: { name, arguments: piece } } of delta.tool_calls ?? []) {
          calls[index] ??= [id, name, ""];
          calls[index][2] += piece ?? "";
        }
      }
    }
    seen.calls = calls;
  },
  async plain(client, params, seen) {
    const whole = await client.chat.completions.create(params);
    const { message, finish_reason } = whole.choices[0];
    seen.text = message.content ?? "";
    seen.refusal = message.refusal ?? "";
    seen.reasoning = reasoningIn(message);
    seen.calls = (message.tool_calls ?? []).map(callOf);
    seen.finish = finish_reason;
    seen.usage = whole.usage;
  },
  async tools(client, params, seen) {
    const stream = client.chat.completions.stream({ ...params, tools: TOOLS });
    const whole = await stream.finalChatCompletion();
    seen.finish = whole.choices[0].finish_reason;
    seen.calls = whole.choices[0].message.tool_calls.map(callOf);
  },
  async left(client, params, seen) {
    const stream = await client.chat.completions.create({ ...params, stream: true });
    for await (const chunk of stream) {
      seen.text += chunk.choices[0]?.delta?.content ?? "";
      if (seen.text) break;
    }
  },
};

function told(error) {
  return {
    exception: error.constructor.name,
    isAPIError: error instanceof OpenAI.APIError,
    status: error.status ?? null,
    code: error.code ?? null,
    type: error.type ?? null,
    trace: error.error?.trace_id ?? null,
  };
}

await runCases(async ({ model, kind, retries, tools }, seen) => {
  const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: retries, timeout: 20000 });
  await KINDS[kind](client, { model, messages: ASK, ...(tools && { tools: TOOLS }) }, seen);
}, told);
