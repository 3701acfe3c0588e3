// Drives `client.responses` of the npm package `openai` for tests/integration/test_responses_node.py.
// In: the base URL as an argument; cases {name, model, kind, retries, tools}. Out: see cases.mjs.
import OpenAI from "openai";
import { describe, runCases } from "./cases.mjs";

const ASK = { input: "سلام", store: false };
const TOOLS = [
  { type: "function", name: "weather", strict: false, parameters: { type: "object", properties: { city: { type: "string" } } } },
];
const INCOMPLETE = { max_output_tokens: "length", content_filter: "content_filter" };

function read(response, seen) {
  const of = (type) => response.output.filter((item) => item.type === type);
  const parts = of("message").flatMap((item) => item.content);
  const text = parts.filter((part) => part.type === "output_text").map((part) => part.text);
  const refusal = parts.filter((part) => part.type === "refusal").map((part) => part.refusal);
  const thoughts = of("reasoning").map((item) => [...item.summary, ...(item.content ?? [])].map((part) => part.text));
  seen.text = text.join("");
  seen.refusal = refusal.join("");
  seen.reasoning = thoughts.map((pieces) => pieces.join("\n\n")).join("");
  seen.calls = of("function_call").map((item) => [item.call_id, item.name, item.arguments]);
  const whole = seen.calls.length > 0 ? "tool_calls" : "stop";
  seen.finish = response.status === "incomplete" ? INCOMPLETE[response.incomplete_details.reason] : whole;
  seen.usage = response.usage && [response.usage.input_tokens, response.usage.output_tokens];
}

const KINDS = {
  async streamed(client, params, seen) {
    const stream = client.responses.stream(params);
    stream.on("response.output_text.delta", (event) => (seen.text += event.delta));
    stream.on("response.reasoning_text.delta", (event) => (seen.reasoning += event.delta));
    stream.on("response.reasoning_summary_text.delta", (event) => (seen.reasoning += event.delta));
    const whole = await stream.finalResponse();
    const streamed = seen.text;
    read(whole, seen);
    if (whole.output_text !== streamed) throw new Error(`the deltas are not the whole: ${streamed}`);
  },
  async raw(client, params, seen) {
    let last;
    for await (const event of await client.responses.create({ ...params, stream: true })) {
      if (event.type === "response.output_text.delta") seen.text += event.delta;
      last = event;
    }
    read(last.response, seen);
  },
  async plain(client, params, seen) {
    read(await client.responses.create(params), seen);
  },
  async left(client, params, seen) {
    const stream = await client.responses.create({ ...params, stream: true });
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") {
        seen.text += event.delta;
        break;
      }
    }
  },
};

await runCases(
  async ({ model, kind, retries, tools }, seen) => {
    const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: retries, timeout: 20000 });
    await KINDS[kind](client, { model, ...ASK, ...(tools && { tools: TOOLS }) }, seen);
  },
  (error) => describe(error, error.error),
);
