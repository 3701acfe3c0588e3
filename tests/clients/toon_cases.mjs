// Drives proxy/toon/client.mjs for tests/integration/test_toon_browser.py, in Node and in a browser alike.
// In: the module, the address of the scripted server, cases {name, kind, request, apiKey, keepSpecial}. Out: what was
// seen of each: text, pieces, ids, offsets, finish, usage, misplaced, error.

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function errorIn(error) {
  const { name, code = null, status = null, retryable = null, retryAfter = null, param = null, traceId = null } = error;
  return { name, code: typeof code === "string" ? code : null, status, retryable, retryAfter, param, traceId };
}

const KINDS = {
  async streamed({ client, request, seen }) {
    const stream = client.stream(request);
    try {
      for await (const chunk of stream) take(seen, chunk);
    } finally {
      seen.misplaced = stream.misplaced.map(({ reason }) => reason);
    }
  },
  async plain({ client, request, seen }) {
    const answer = await client.complete(request);
    take(seen, answer);
    seen.stride = answer.stride;
  },
  async left({ client, request, seen }) {
    for await (const chunk of client.stream(request)) {
      take(seen, chunk);
      break;
    }
  },
  async aborted({ client, request, seen }) {
    const controller = new AbortController();
    for await (const chunk of client.stream(request, { signal: controller.signal })) {
      take(seen, chunk);
      setTimeout(() => controller.abort(), 20);
    }
  },
};

function take(seen, { ids, offset, text, finishReason, stopId, usage }) {
  seen.ids.push(...ids);
  seen.offsets.push(offset);
  if (text !== null) seen.pieces.push(text);
  seen.finish = finishReason ?? seen.finish;
  seen.stopId = stopId ?? seen.stopId;
  seen.usage = usage ?? seen.usage;
}

export async function runCases(toon, address, cases) {
  const vocabulary = await toon.Vocabulary.fetch(`${address}/tokenizer.json`);
  const out = {};
  for (const { name, kind, request, apiKey } of cases) {
    const told = [];
    const how = { apiKey, vocabulary, onMisplaced: ({ reason }) => told.push(reason) };
    const client = new toon.ToonClient(`${address}/${encodeURIComponent(name)}/v1`, how);
    const seen = { ids: [], offsets: [], pieces: [], finish: null, stopId: null, usage: null, error: null };
    try {
      await KINDS[kind]({ client, request, seen });
    } catch (error) {
      seen.error = errorIn(error);
    }
    out[name] = { ...seen, told };
  }
  await sleep(50);
  return out;
}

// Every way to cut a stream in two, and a byte at a time, and ids in any portions: what differs from the whole.
export async function cutEverywhere(toon, address, streams, ids, text) {
  const vocabulary = await toon.Vocabulary.fetch(`${address}/tokenizer.json`);
  const wrong = [];
  for (const stream of streams) {
    const bytes = new TextEncoder().encode(stream);
    const whole = JSON.stringify(readIn(toon, [bytes]));
    const ways = [...bytes.keys()].map((at) => [bytes.slice(0, at), bytes.slice(at)]);
    ways.push([...bytes].map((byte) => Uint8Array.of(byte)));
    for (const reads of ways) {
      if (JSON.stringify(readIn(toon, reads)) !== whole) wrong.push(`at ${reads[0].length} of ${stream.slice(0, 20)}`);
    }
  }
  for (let at = 0; at <= ids.length; at += 1) {
    const decoder = new toon.TokenDecoder(vocabulary);
    const pieces = [decoder.feed(ids.slice(0, at)), decoder.feed(ids.slice(at)), decoder.finish()];
    if (pieces.join("") !== text || pieces.some((piece) => piece.includes("\ufffd"))) wrong.push(`ids at ${at}`);
  }
  return wrong;
}

function readIn(toon, reads) {
  const reader = new toon.SseReader();
  const utf8 = new TextDecoder();
  const out = reads.flatMap((read) => reader.feed(utf8.decode(read, { stream: true })));
  return [...out, ...reader.feed(utf8.decode()), ...reader.finish()];
}

// What ids become, for tokenizers of both kinds.
export function textsOf(toon, tokenizer, portions, keepSpecial) {
  const vocabulary = new toon.Vocabulary(tokenizer);
  return portions.map((ids) => vocabulary.textOf(ids, { keepSpecial }));
}

// As a program of Node: the module's path and the address are arguments, a job is JSON on standard input.
if (typeof process !== "undefined" && process.argv?.[2]?.endsWith("client.mjs")) {
  const toon = await import(process.argv[2]);
  const address = process.argv[3];
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  const jobs = JSON.parse(Buffer.concat(parts).toString("utf8"));
  const functions = { runCases, cutEverywhere };
  const out = [];
  for (const { job, args } of jobs) {
    out.push(job === "textsOf" ? textsOf(toon, ...args) : await functions[job](toon, address, ...args));
  }
  process.stdout.write(JSON.stringify(out));
}
