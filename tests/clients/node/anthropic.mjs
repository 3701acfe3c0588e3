// Drives the npm package `@anthropic-ai/sdk` for tests/integration/test_anthropic_node.py.
// In: the base URL as an argument; cases {name, model, kind, retries, tools}. Out: see cases.mjs.
import Anthropic from "@anthropic-ai/sdk";
import { describe, runCases } from "./cases.mjs";

const ASK = { max_tokens: 99, messages: [{ role: "user", content: "سلام" }] };
const TOOLS = [{ name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }];
const FINISHES = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

function read(message, seen) {
  const of = (type) => message.content.filter((block) => block.type === type);
  seen.text = of("text").map((block) => block.text).join("");
  seen.reasoning = of("thinking").map((block) => block.thinking).join("");
  seen.calls = of("tool_use").map((block) => [block.id, block.name, JSON.stringify(block.input)]);
  seen.finish = FINISHES[message.stop_reason] ?? null;
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = message.usage;
  seen.usage = [input_tokens + (cache_read_input_tokens ?? 0) + (cache_creation_input_tokens ?? 0), output_tokens];
}

const KINDS = {
  async streamed(client, params, seen) {
    const stream = client.messages.stream(params);
    stream.on("streamEvent", (_, snapshot) => read(snapshot, seen));
    read(await stream.finalMessage(), seen);
  },
  async plain(client, params, seen) {
    read(await client.messages.create(params), seen);
  },
  async left(client, params, seen) {
    const stream = await client.messages.create({ ...params, stream: true });
    for await (const event of stream) {
      if (event.type === "content_block_delta") {
        seen.text += event.delta.text;
        break;
      }
    }
  },
  async count(client, { max_tokens: _, ...params }, seen) {
    seen.usage = [(await client.messages.countTokens(params)).input_tokens, 0];
  },
  async models(client, _, seen) {
    for await (const model of client.models.list()) seen.text += `${model.id} `;
  },
};

await runCases(
  async ({ model, kind, retries, tools }, seen) => {
    const client = new Anthropic({ baseURL: process.argv[2], apiKey: "none", maxRetries: retries, timeout: 20000 });
    await KINDS[kind](client, { model, ...ASK, ...(tools && { tools: TOOLS }) }, seen);
  },
  (error) => describe(error, error.error?.error),
);
