// Drives the npm packages `ai` and `@ai-sdk/openai-compatible` for tests/integration/test_ai_sdk_node.py.
// In: the base URL as an argument; cases {name, model, kind, retries, tools: names or null}. Out: see cases.mjs.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, jsonSchema, RetryError, streamText, tool } from "ai";
import { describe, runCases } from "./cases.mjs";

const FINISHES = { "tool-calls": "tool_calls", "content-filter": "content_filter" };

function toolsNamed(names) {
  const inputSchema = jsonSchema({ type: "object", properties: {}, additionalProperties: true });
  return Object.fromEntries((names ?? []).map((name) => [name, tool({ inputSchema })]));
}

function finished(reason, usage, seen) {
  seen.finish = FINISHES[reason] ?? reason;
  seen.usage = [usage.inputTokens, usage.outputTokens];
}

const callOf = (part) => [part.toolCallId, part.toolName, JSON.stringify(part.input)];

const KINDS = {
  async streamed(params, seen) {
    seen.calls = [];
    const result = streamText({ ...params, onError() {} });
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") seen.text += part.text;
      if (part.type === "reasoning-delta") seen.reasoning += part.text;
      if (part.type === "tool-call") seen.calls.push(callOf(part));
      if (part.type === "finish") finished(part.finishReason, part.totalUsage, seen);
      if (part.type === "error") throw part.error;
    }
  },
  async plain(params, seen) {
    const whole = await generateText(params);
    seen.text = whole.text;
    seen.reasoning = whole.reasoningText ?? "";
    seen.calls = whole.toolCalls.map(callOf);
    finished(whole.finishReason, whole.totalUsage, seen);
  },
  async left(params, seen) {
    const abort = new AbortController();
    const result = streamText({ ...params, abortSignal: abort.signal, onError() {} });
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") {
        seen.text += part.text;
        abort.abort();
        break;
      }
    }
  },
};

// Before the stream the error is one of HTTP; inside it, it is the vendor's object as it came.
function told(thrown) {
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown;
  if (!APICallError.isInstance(error)) return describe(error, error);
  return { ...describe(error, JSON.parse(error.responseBody).error), exception: "APICallError", status: error.statusCode };
}

const provider = createOpenAICompatible({
  name: "sluice",
  baseURL: process.argv[2],
  apiKey: "none",
  includeUsage: true,
});

await runCases(async ({ model, kind, retries, tools }, seen) => {
  const params = { model: provider(model), prompt: "سلام", maxRetries: retries, tools: toolsNamed(tools) };
  await KINDS[kind](params, seen);
}, told);
