// Drives the npm package `openai` for tests/integration/test_openai_node.py.
// In: the base URL as an argument, and on standard input a JSON list of cases {name, model, kind, retries}.
// Out: one JSON line per case: what came, or which exception it was.
import OpenAI from "openai";

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

async function streamed(client, model, seen) {
  const stream = await client.chat.completions.create({
    model,
    messages: ASK,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    seen.text += chunk.choices[0]?.delta?.content ?? "";
    seen.finish = chunk.choices[0]?.finish_reason ?? seen.finish;
    seen.usage = chunk.usage ?? seen.usage;
  }
}

async function plain(client, model, seen) {
  const whole = await client.chat.completions.create({ model, messages: ASK });
  seen.text = whole.choices[0].message.content;
  seen.finish = whole.choices[0].finish_reason;
  seen.usage = whole.usage;
}

async function tools(client, model, seen) {
  const stream = client.chat.completions.stream({ model, messages: ASK, tools: TOOLS });
  const whole = await stream.finalChatCompletion();
  seen.finish = whole.choices[0].finish_reason;
  seen.calls = whole.choices[0].message.tool_calls.map((call) => [call.id, call.function.name, call.function.arguments]);
}

async function left(client, model, seen) {
  const stream = await client.chat.completions.create({ model, messages: ASK, stream: true });
  for await (const chunk of stream) {
    seen.text += chunk.choices[0]?.delta?.content ?? "";
    if (seen.text) break;
  }
}

const KINDS = { streamed, plain, tools, left };

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

let input = "";
for await (const piece of process.stdin) input += piece;
for (const { name, model, kind, retries } of JSON.parse(input)) {
  const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: retries, timeout: 20000 });
  const seen = { name, text: "", finish: null, usage: null, calls: null, error: null };
  try {
    await KINDS[kind](client, model, seen);
  } catch (error) {
    seen.error = told(error);
  }
  console.log(JSON.stringify(seen));
}
