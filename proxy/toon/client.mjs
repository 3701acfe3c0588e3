/**
 * A client of the token-native route of Sluice (docs/toon.md) for browsers and Node 18 or later: one ES module alone.
 *
 *     import { ToonClient, Vocabulary } from "./client.mjs";
 *     const vocabulary = await Vocabulary.fetch("/models/small/tokenizer.json");
 *     const client = new ToonClient("https://sluice.example", { apiKey, vocabulary });
 *     for await (const chunk of client.stream(request, { signal })) show(chunk.text);
 *
 * It is what `proxy/toon/client.py` is: events are parsed however they were cut, an event counts only if it stands at
 * its true place, what does not is dropped and told, text comes on whole characters (code points; a family of emoji may
 * come in two pieces), and what goes wrong is a `ToonError`. Leaving the loop, or aborting the signal, hangs up.
 *
 * Integers: this language has no exact ones beyond 2^53 - 1. A request whose ids, seed or positions (those of the
 * longest answer included) go beyond is refused here (`unsafe_integer`), before it would be rounded; an event that says
 * such a number is dropped as `shape`. All else about a request is for the server to check.
 *
 * @module
 */

const PATH = "/v1/completions/toon";
const MEDIA_TYPE = "application/toon+json";
const EVENT_STREAM = "text/event-stream";
const MAX_CHARS = 8 * 1024 * 1024;
const MAX_QUOTED = 200;
/** The `max_tokens` of a request that names none. */
const USUAL_TOKENS = 256;

/**
 * @typedef {object} ToonRequest As docs/toon.md has it; more fields pass.
 * @property {{v: string, ids: number[]}} tids
 * @property {{type: string, scope: string, fallback: string, custom_def?: object}} mask
 * @property {{base: string, offset: number, stride: number}} pos
 * @property {{source?: string, trace_id?: string, origin_tokens?: string[]}} [meta]
 * @property {string} [model]
 * @property {number} [max_tokens]
 * @property {"keep"|"strip"|"refuse"} [x_special_tokens]
 */
/**
 * @typedef {object} ToonChunk One event: `ids` from `offset` on. The last two have none: the finish, and the usage.
 * @property {number[]} ids
 * @property {number} offset
 * @property {string|null} text What became whole with it; null without a vocabulary.
 * @property {string|null} finishReason
 * @property {number|null} stopId
 * @property {object|null} usage
 * @property {object} event All that was said.
 */
/**
 * @typedef {"shape"|"identity"|"prompt_ids"|"behind"|"ahead"|"off_grid"|"finished"} Reason
 * `shape`: no event of an answer. `identity`: of another version, base, stride or trace. `prompt_ids`: another number
 * of prompt ids than the answer's, or none where the first event must say it. `behind`, `ahead`, `off_grid`: before the
 * place of the next id, beyond it, between two. `finished`: the answer had ended.
 */
/** @typedef {{reason: Reason, expected: number|null, event: object}} Misplaced */

/**
 * @typedef {object} Details
 * @property {string|null} [param] A JSON pointer into the request.
 * @property {boolean} [retryable]
 * @property {number|null} [retryAfter] In seconds.
 * @property {string|null} [traceId]
 * @property {unknown} [cause]
 */

/** What a request or its answer failed with, as the contract's error says it. */
export class ToonError extends Error {
  /**
   * @param {number|null} status The HTTP status, null where there was none.
   * @param {string} code
   * @param {string} message
   * @param {Details} [more]
   */
  constructor(status, code, message, more = {}) {
    const { param = null, retryable = false, retryAfter = null, traceId = null, cause } = more;
    super(`${code}${param ? ` at ${param}` : ""}: ${message}`, { cause });
    this.name = "ToonError";
    Object.assign(this, { status, code, param, retryable, retryAfter, traceId });
  }
}

export class ToonClient {
  #url;
  #headers;
  #vocabulary;
  #onMisplaced;

  /**
   * @param {string} baseUrl With or without `/v1`.
   * @param {{apiKey?: string, vocabulary?: Vocabulary, onMisplaced?: (misplaced: Misplaced) => void}} [how]
   */
  constructor(baseUrl, { apiKey, vocabulary, onMisplaced } = {}) {
    this.#url = baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "") + PATH;
    this.#headers = { "content-type": MEDIA_TYPE, ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) };
    this.#vocabulary = vocabulary ?? null;
    this.#onMisplaced = onMisplaced ?? (() => {});
  }

  /**
   * The whole answer at once.
   * @param {ToonRequest} request
   * @param {{signal?: AbortSignal}} [how]
   * @returns {Promise<ToonChunk & {stride: number}>}
   */
  async complete(request, { signal } = {}) {
    const places = new Places(request);
    const response = await this.#post({ ...request, stream: false }, `${MEDIA_TYPE}, application/json`, signal);
    const body = await wholeOf(response, signal);
    const answer = objectIn(body);
    if (answer === null) {
      throw new ToonError(200, "malformed_answer", `The answer is no JSON object: ${quoted(body)}`);
    }
    const misplaced = places.check(answer);
    if (misplaced !== null) {
      const told = `The answer is out of place (\`${misplaced.reason}\`); its ids cannot be told from others.`;
      throw new ToonError(200, "answer_misplaced", told, { retryable: true });
    }
    const text = this.#vocabulary && this.#vocabulary.textOf(answer.tids.ids);
    return { ...chunkOf(answer, text), stride: request.pos.stride };
  }

  /**
   * The answer as it is made: `for await (const chunk of client.stream(request))`. Its `misplaced` is what was dropped.
   * Nothing is sent before the first chunk is asked for. Throws a `ToonError` after all that was in place.
   * @param {ToonRequest} request
   * @param {{signal?: AbortSignal}} [how]
   * @returns {AsyncGenerator<ToonChunk, void, void> & {misplaced: Misplaced[]}}
   */
  stream(request, { signal } = {}) {
    const places = new Places(request);
    /** @type {Misplaced[]} */
    const misplaced = [];
    const tell = (one) => {
      misplaced.push(one);
      this.#onMisplaced(one);
    };
    return Object.assign(this.#chunks(request, places, misplaced, tell, signal), { misplaced });
  }

  async *#chunks(request, places, misplaced, tell, signal) {
    const hangUp = new AbortController();
    const leave = () => hangUp.abort(signal.reason);
    if (signal?.aborted) leave();
    signal?.addEventListener("abort", leave);
    try {
      const response = await this.#post({ ...request, stream: true }, EVENT_STREAM, hangUp.signal);
      const decoder = this.#vocabulary && new TokenDecoder(this.#vocabulary);
      for await (const data of eventsOf(response, hangUp.signal)) {
        if (data === "[DONE]") {
          if (!places.isWhole) throw incomplete(places, misplaced);
          return;
        }
        const event = objectIn(data);
        if (event === null) {
          throw new ToonError(200, "malformed_event", `An event is no JSON object: ${quoted(data)}`);
        }
        if ("error" in event) throw errorOf(event, null, null);
        const found = places.check(event);
        if (found !== null) {
          tell(found);
          continue;
        }
        const text = decoder && decoder.feed(event.tids.ids) + (event.finish_reason ? decoder.finish() : "");
        yield chunkOf(event, text);
      }
      throw cut("the connection closed before [DONE]");
    } finally {
      signal?.removeEventListener("abort", leave);
      hangUp.abort();
    }
  }

  async #post(body, accept, signal) {
    let response;
    try {
      const asked = { method: "POST", headers: { ...this.#headers, accept }, body: JSON.stringify(body) };
      // A redirect would take the key elsewhere.
      response = await fetch(this.#url, { ...asked, signal, redirect: "error" });
    } catch (cause) {
      if (signal?.aborted) throw cause;
      const told = `${this.#url} cannot be reached: ${cause.message}.`;
      throw new ToonError(null, "connection_failed", told, { retryable: true, cause });
    }
    const kind = (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
    if (response.status === 200 && (accept !== EVENT_STREAM || kind === EVENT_STREAM)) return response;
    throw refusalOf(response, await wholeOf(response, signal));
  }
}

/**
 * Where the ids of one answer stand. What is in place so far is always a beginning of the answer without a hole: the
 * next ids must stand at offset + stride x (prompt ids + ids in place). Of a duplicate the second is dropped; behind a
 * gap all is, the finish too, so the answer is not whole; of a swap the earlier one counts, and what follows is behind
 * the hole that the dropped one left. A dropped event moves nothing.
 */
export class Places {
  #asked;
  #pos;
  #version;
  #traceId;
  #state = "open"; // then "finished", then "told": its usage came
  /** How many ids are in place. */
  count = 0;

  /** @param {ToonRequest} request */
  constructor(request) {
    const { tids, mask, pos, meta } = request;
    checkIntegers(request);
    this.#asked = tids.ids.length;
    this.#pos = { ...pos };
    this.#version = tids.v;
    this.#traceId = meta?.trace_id ?? null;
    // Only ids that are stripped and leave no gap have no place: then the upstream alone knows how many have.
    const knows = request.x_special_tokens !== "strip" || mask?.fallback === "pad";
    /** @type {number|null} */
    this.promptIds = knows ? this.#asked : null;
  }

  /** Where the next id stands, null where that is not known yet. */
  get next() {
    return this.promptIds === null ? null : this.#place(this.promptIds);
  }

  /** Its finish came, in its place: no id is missing. */
  get isWhole() {
    return this.#state !== "open";
  }

  /**
   * @param {object} event
   * @returns {Misplaced|null} null: it is in place, and counted.
   */
  check(event) {
    const promptIds = "x_prompt_ids" in event ? event.x_prompt_ids : this.promptIds;
    const reason = this.#reason(event, promptIds);
    if (reason !== null) return { reason, expected: this.next, event };
    this.promptIds = promptIds;
    this.#traceId = event.meta.trace_id;
    this.count += event.tids.ids.length;
    if (typeof event.finish_reason === "string") this.#state = "finished";
    if (event.usage != null && this.#state === "finished") this.#state = "told";
    return null;
  }

  #reason(event, promptIds) {
    if (!isEvent(event)) return "shape";
    const { base, stride, offset } = event.pos;
    const traceId = event.meta?.trace_id;
    const isMine = event.tids.v === this.#version && base === this.#pos.base && stride === this.#pos.stride;
    if (!isMine || typeof traceId !== "string" || traceId !== (this.#traceId ?? traceId)) return "identity";
    if (!this.#mayBe(promptIds)) return "prompt_ids";
    const expected = this.#place(promptIds);
    if ((offset - expected) % this.#pos.stride !== 0) return "off_grid";
    if (offset !== expected) return offset < expected ? "behind" : "ahead";
    const adds = event.tids.ids.length > 0 || event.finish_reason != null;
    return this.#state === "told" || (this.#state === "finished" && adds) ? "finished" : null;
  }

  #mayBe(promptIds) {
    if (this.promptIds !== null) return promptIds === this.promptIds;
    return Number.isSafeInteger(promptIds) && promptIds > 0 && promptIds <= this.#asked;
  }

  #place(promptIds) {
    return this.#pos.offset + this.#pos.stride * (promptIds + this.count);
  }
}

/** The bytes of each id, read from what a `tokenizer.json` holds (decoders ByteLevel, ByteFallback and Metaspace). */
export class Vocabulary {
  #names = new Map();
  #pieces = new Map();
  #isByteLevel;
  /** The ids that are no text (`<|im_end|>` and the like). */
  special = new Set();

  /** @param {object} tokenizer The parsed JSON. */
  constructor(tokenizer) {
    const decoders = decodersOf(tokenizer?.decoder);
    this.#isByteLevel = decoders.includes("ByteLevel");
    if (!this.#isByteLevel && !decoders.some((one) => one === "ByteFallback" || one === "Metaspace")) {
      const told = decoders.join(", ") || "none";
      throw new TypeError(`this tokenizer's decoder is ${told}; known are ByteLevel, ByteFallback and Metaspace`);
    }
    const vocabulary = tokenizer.model?.vocab;
    if (Array.isArray(vocabulary)) vocabulary.forEach(([name], id) => this.#names.set(id, name));
    else if (vocabulary && typeof vocabulary === "object") {
      for (const [name, id] of Object.entries(vocabulary)) this.#names.set(id, name);
    } else throw new TypeError("this tokenizer's model has no vocabulary");
    for (const { id, content, special } of tokenizer.added_tokens ?? []) {
      this.#names.delete(id);
      this.#pieces.set(id, this.#isByteLevel ? bytesOfLetters(content) : UTF8.encode(content));
      if (special) this.special.add(id);
    }
  }

  /**
   * @param {string|URL} url Of a tokenizer.json.
   * @param {RequestInit} [how]
   */
  static async fetch(url, how) {
    const response = await fetch(url, how);
    if (!response.ok) throw new TypeError(`${url} cannot be had: HTTP ${response.status}`);
    return new Vocabulary(await response.json());
  }

  /**
   * @param {number} id
   * @returns {Uint8Array|null} null where the vocabulary has no such id.
   */
  piece(id) {
    let piece = this.#pieces.get(id);
    if (piece === undefined && this.#names.has(id)) {
      piece = this.#isByteLevel ? bytesOfLetters(this.#names.get(id)) : bytesOrText(this.#names.get(id));
      this.#pieces.set(id, piece);
    }
    return piece ?? null;
  }

  /**
   * All ids at once.
   * @param {number[]} ids
   * @param {{keepSpecial?: boolean}} [how]
   */
  textOf(ids, how) {
    const decoder = new TokenDecoder(this, how);
    return decoder.feed(ids) + decoder.finish();
  }
}

/** Is fed ids and gives the text that they made whole, never half a code point. One per answer. */
export class TokenDecoder {
  #vocabulary;
  #keepSpecial;
  #utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  /** How many ids the vocabulary lacked. */
  unknown = 0;

  /**
   * @param {Vocabulary} vocabulary
   * @param {{keepSpecial?: boolean}} [how]
   */
  constructor(vocabulary, { keepSpecial = false } = {}) {
    this.#vocabulary = vocabulary;
    this.#keepSpecial = keepSpecial;
  }

  /**
   * @param {number[]} ids
   * @returns {string} "" while no character is whole.
   */
  feed(ids) {
    let text = "";
    for (const id of ids) {
      if (!this.#keepSpecial && this.#vocabulary.special.has(id)) continue;
      const piece = this.#vocabulary.piece(id);
      if (piece === null) this.unknown += 1;
      else text += this.#utf8.decode(piece, { stream: true });
    }
    return text;
  }

  /** What is held: U+FFFD for a character that never became whole. */
  finish() {
    return this.#utf8.decode();
  }
}

/** The data of each server-sent event. Lines end at CR, LF and CRLF; the cuts of the bytes do not matter. */
export class SseReader {
  #held = [];
  #heldChars = 0;
  #afterCr = false;
  /** @type {string[]|null} */
  #data = null;
  #chars = 0;

  /**
   * @param {string} text Decoded in a stream, so that no character is cut.
   * @returns {string[]}
   */
  feed(text) {
    // A CR ends its line at once; a LF after it belongs to it, even when it comes with the next read.
    if (this.#afterCr && text !== "") {
      this.#afterCr = false;
      if (text[0] === "\n") text = text.slice(1);
    }
    if (text.endsWith("\r")) this.#afterCr = true;
    const lines = text.split(/\r\n|\n|\r/);
    const rest = lines.pop();
    if (lines.length > 0) {
      lines[0] = this.#held.join("") + lines[0];
      this.#held = [];
      this.#heldChars = 0;
    }
    this.#held.push(rest);
    this.#heldChars += rest.length;
    const events = [];
    for (const line of lines) this.#line(line, events);
    if (this.#heldChars > MAX_CHARS) throw tooLong();
    return events;
  }

  /** The last event, if only its blank line is missing and it is whole in itself. */
  finish() {
    const events = [];
    this.#line(this.#held.join(""), events);
    this.#line("", events);
    return events.filter((data) => data === "[DONE]" || objectIn(data) !== null);
  }

  #line(line, events) {
    if (line === "") {
      const data = this.#data?.join("\n");
      if (data) events.push(data);
      this.#data = null;
      this.#chars = 0;
    } else if (line === "data" || line.startsWith("data:")) {
      const value = line.slice(5);
      (this.#data ??= []).push(value.startsWith(" ") ? value.slice(1) : value);
      this.#chars += line.length;
      if (this.#chars > MAX_CHARS) throw tooLong();
    }
  }
}

async function* eventsOf(response, signal) {
  const events = new SseReader();
  const utf8 = new TextDecoder(); // drops a byte order mark at the very start
  const reader = response.body.getReader();
  for (;;) {
    let read;
    try {
      read = await reader.read();
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw cut(`the connection broke (${cause.message})`, cause);
    }
    if (read.done) break;
    yield* events.feed(utf8.decode(read.value, { stream: true }));
  }
  yield* [...events.feed(utf8.decode()), ...events.finish()];
}

async function wholeOf(response, signal) {
  try {
    return await response.text();
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw cut(`the connection broke (${cause.message})`, cause);
  }
}

function chunkOf(event, text) {
  return {
    ids: event.tids.ids,
    offset: event.pos.offset,
    text,
    finishReason: event.finish_reason ?? null,
    stopId: Number.isSafeInteger(event.stop_id) ? event.stop_id : null,
    usage: event.usage ?? null,
    event,
  };
}

function isEvent(event) {
  const ids = event.tids?.ids;
  return (
    Array.isArray(ids) &&
    ids.every((id) => Number.isSafeInteger(id) && id >= 0) &&
    Number.isSafeInteger(event.pos?.offset) &&
    (event.finish_reason == null || typeof event.finish_reason === "string")
  );
}

/** What would be rounded on its way is refused, and what has no place cannot be verified. */
function checkIntegers(request) {
  const ids = request.tids?.ids;
  if (!Array.isArray(ids)) throw wrong("missing_field", "a list of ids is required", "/tids/ids");
  const at = ids.findIndex((id) => !Number.isSafeInteger(id));
  if (at >= 0) throw wrong("unsafe_integer", `${ids[at]} is no integer up to 2^53 - 1`, `/tids/ids/${at}`);
  for (const name of ["offset", "stride"]) {
    if (!Number.isSafeInteger(request.pos?.[name])) {
      throw wrong("unsafe_integer", `${request.pos?.[name]} is no integer up to 2^53 - 1`, `/pos/${name}`);
    }
  }
  if (request.seed !== undefined && !Number.isSafeInteger(request.seed)) {
    throw wrong("unsafe_integer", `${request.seed} is no integer up to 2^53 - 1`, "/seed");
  }
  const { offset, stride } = request.pos;
  const last = offset + stride * (ids.length + (request.max_tokens ?? USUAL_TOKENS));
  if (!Number.isSafeInteger(last)) {
    throw wrong("unsafe_integer", "with the longest answer, a position would be beyond 2^53 - 1", "/pos/offset");
  }
}

function wrong(code, message, param) {
  return new ToonError(400, code, `${message}.`, { param });
}

function cut(how, cause) {
  return new ToonError(null, "stream_cut", `The answer was cut: ${how}. Ask again.`, { retryable: true, cause });
}

function tooLong() {
  return new ToonError(200, "line_too_long", `A line or an event is longer than ${MAX_CHARS} characters.`);
}

function incomplete(places, misplaced) {
  const told = misplaced.length
    ? `The answer is not whole: ${misplaced.length} events stood out of place and were dropped, the first as ` +
      `\`${misplaced[0].reason}\`, and nothing in place came from position ${places.next} on. Ask again.`
    : "The stream ended with [DONE] and without a finish: its end is missing. Ask again.";
  return new ToonError(200, "answer_incomplete", told, { retryable: true });
}

function refusalOf(response, body) {
  const told = objectIn(body);
  const traceId = response.headers.get("x-trace-id");
  if (told !== null && "error" in told) return errorOf(told, response.status, traceId);
  const message = `HTTP ${response.status}, and no error of Sluice: ${quoted(body)}`;
  return new ToonError(response.status, "unexpected_answer", message, { retryable: response.status >= 500, traceId });
}

function errorOf(told, status, traceId) {
  const error = told.error !== null && typeof told.error === "object" ? told.error : {};
  return new ToonError(status, error.code ?? "unknown", error.message ?? "No reason was given.", {
    param: error.param ?? null,
    retryable: error.retryable === true,
    retryAfter: typeof error.retry_after === "number" ? error.retry_after : null,
    traceId: error.trace_id ?? traceId,
  });
}

function objectIn(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function quoted(text) {
  return JSON.stringify(text.slice(0, MAX_QUOTED));
}

const UTF8 = new TextEncoder();
const BYTE = /^<0x([0-9A-Fa-f]{2})>$/;
/** GPT-2's letters for bytes: those that print stand for themselves, the others follow from U+0100. */
const LETTERS = new Map();
for (let byte = 0, next = 0x100; byte < 256; byte += 1) {
  const prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  LETTERS.set(String.fromCharCode(prints ? byte : next++), byte);
}

/** A name with a letter that stands for no byte is meant as it is written. */
function bytesOfLetters(name) {
  const bytes = new Uint8Array(name.length);
  for (let at = 0; at < name.length; at += 1) {
    const byte = LETTERS.get(name[at]);
    if (byte === undefined) return UTF8.encode(name);
    bytes[at] = byte;
  }
  return bytes;
}

function bytesOrText(name) {
  const byte = BYTE.exec(name);
  return byte === null ? UTF8.encode(name.replaceAll("▁", " ")) : Uint8Array.of(parseInt(byte[1], 16));
}

/** The kinds of a decoder's steps. */
function decodersOf(decoder) {
  if (decoder === null || typeof decoder !== "object") return [];
  if (decoder.type === "Sequence" && Array.isArray(decoder.decoders)) return decoder.decoders.flatMap(decodersOf);
  return [String(decoder.type)];
}
