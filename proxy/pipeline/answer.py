"""The answer as the client will get it: canonical deltas in, events (or one body) out.

Holds what belongs to the choices: tails, tool calls, fences, finishes. Before the commit point what is to be sent
waits unencoded, because identity (`id`, `model`) may still come; finishes wait for the end, because vendors repeat
them or say them too early. What passes as it came is decided here, event by event: nothing held, nothing repeated,
nothing to add. (contract W3, W4; design "The fast path")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proxy.canon.chunk import NOTHING, Chunk, Delta, ToolFragment
from proxy.canon.usage import Count, Usage
from proxy.dialects.base import Reader, Writer
from proxy.dialects.openai.body import completion_choice
from proxy.dialects.openai.run import PlainShape
from proxy.dialects.payload import is_empty, whole_text
from proxy.errors import LimitExceeded
from proxy.pipeline.choice import CALL, Choice, Key
from proxy.pipeline.reports import understood
from proxy.pipeline.values import ID, Asked, Facts, Pieces, Setup
from proxy.semantics.completeness import corrected, inferred
from proxy.semantics.fences import FenceStrip
from proxy.semantics.toolcalls import Call
from proxy.wire.encode import event

_ROLE = {"role": "assistant", "content": ""}
_REASONING = ("reasoning_content", "reasoning")
_ID_BYTES = 8
_STATE_BYTES = 1024  # what the state of a choice or of a tool call takes


class Answer:
    """`feed` takes deltas in order; `take` gives what may be written. `said`: anything but a finish has come;
    `spoke_on`: more came behind a finish; `frame_bytes`: the size of the frame that is being read, for the limit on
    what must be kept of it. `is_native`: the vendor's family is the client's."""

    def __init__(
        self, setup: Setup, asked: Asked, reader: Reader, writer: Writer, facts: Facts, *, is_native: bool
    ) -> None:
        self._setup, self._asked, self._facts = setup, asked, facts
        self._ways = setup.profile.ways
        self._doubted = self._ways.untrusted_finishes
        self._reader, self._writer, self._is_native = reader, writer, is_native
        self._choices: dict[int, Choice] = {}
        self._out: list[bytes] = []
        self._waiting: list[_Event] | None = []  # None once committed
        self._size = 0
        self._kept = 0
        self.frame_bytes = 0
        self._last: Chunk | None = None
        self._body: bytes | None = None
        self._may_hold = False
        self._plain_choice: Choice | None = None  # choice 0, while nothing but its text is being said
        self.said = False
        self.spoke_on = False

    # ---- what is asked of it -------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of text received so far, names of calls and the like roughly."""
        return self._size

    @property
    def held(self) -> bool:
        """Is a tail held that has a deadline?"""
        if self._may_hold:
            self._may_hold = any(choice.held_since for choice in self._choices.values())
        return self._may_hold

    @property
    def deadline(self) -> float | None:
        if not self.held:
            return None
        since = [s for choice in self._choices.values() for s in choice.held_since.values()]
        return min(since) + self._setup.hold_s

    @property
    def finished(self) -> bool:
        return bool(self._choices) and all(choice.finish is not None for choice in self._choices.values())

    @property
    def is_doubted(self) -> bool:
        """Does a choice have a finish that this vendor also says before the end?"""
        return any(choice.is_doubted for choice in self._choices.values())

    def knows(self, choice: int) -> bool:
        """Has this choice begun?"""
        return choice in self._choices

    @property
    def decided(self) -> bool:
        """No fence is still in doubt, so the head's headers are known."""
        return all(c.fence is None or c.fence.decided or "content" not in c.seen for c in self._choices.values())

    @property
    def repaired(self) -> bool:
        return any(choice.fence is not None and choice.fence.repaired for choice in self._choices.values())

    @property
    def replaced(self) -> int:
        return sum(hold.replaced for choice in self._choices.values() for hold in choice.holds.values())

    @property
    def finish_reason(self) -> str | None:
        return next((self._choices[index].finish for index in sorted(self._choices)), None)

    def arguments(self) -> Iterator[str]:
        """The joined arguments of every tool call."""
        for choice in self._choices.values():
            for call in choice.tools.calls:
                yield "".join(call.arguments)

    def infer_finish(self) -> None:
        for choice in self._choices.values():
            if choice.finish is None:
                choice.finish = inferred(bool(choice.tools.calls))

    # ---- in ------------------------------------------------------------------------------------------------------

    def feed(self, chunk: Chunk, delta: Delta, finish: str | None, now: float) -> bool:
        """One choice's increment, with its canonical finish. True if it is progress (contract W6)."""
        if not self._is_native and "native" in delta.extra:  # what only a client of the vendor's family can read
            delta.extra = {name: value for name, value in delta.extra.items() if name != "native"}
        choice = self._choices.get(delta.choice)
        if choice is None:
            choice = self._new_choice(delta.choice)
            if delta.texts or delta.tools or delta.role or delta.finish or delta.logprobs is not None or delta.extra:
                self._choices[delta.choice] = choice  # an empty delta opens no choice that would then need its finish
        self._last = choice.last = chunk
        self._plain_choice = None
        progress = bool(delta.texts or delta.tools or (delta.extra and _is_other_piece(delta)))
        if progress:
            self.spoke_on = self.spoke_on or choice.finish is not None
            self._receive(delta)
            if self._writer.speaks is not None:
                self._silence(choice, delta, self._writer.speaks)
            choice.seen.update(delta.texts)
            if "function_call" in delta.extra:
                choice.seen.add("function_call")
        if not self._asked.stream:
            self._fold(choice, delta)
        else:
            self._write(chunk, delta, choice, finish, progress, now)
        if finish is not None:
            choice.finish = finish
            choice.is_doubted = bool(self._doubted) and (delta.finish or "").lower() in self._doubted
            choice.finish_chunk, choice.finish_delta = chunk, delta
        return progress or finish is not None

    def _silence(self, choice: Choice, delta: Delta, speaks: frozenset[str]) -> None:
        """Leave out what the client's grammar has no place for: it is received, and not delivered. Calls are kept, for
        without their end the answer is not whole."""
        if delta.tools or not delta.texts.keys() <= speaks:
            self._facts.altered = True
            for fragment in delta.tools or ():
                choice.tools.place(fragment)
            delta.texts = {field: text for field, text in delta.texts.items() if field in speaks}
            delta.tools = None

    def _new_choice(self, index: int) -> Choice:
        strip = self._asked.json and self._setup.strip_fences
        if self._choices:  # an upstream that opens a choice with every chunk must not outgrow the limit unseen
            self._keep(_STATE_BYTES)
        return Choice(index, self._setup.boundary, self._setup.seed, FenceStrip() if strip else None)

    def _receive(self, delta: Delta) -> None:
        """For the count and the limit: what the vendor sent, before any repair."""
        self.said = True
        received = self._facts.received_of(delta.choice)
        for field, text in delta.texts.items():
            if field != "reasoning" or "reasoning_content" not in delta.texts:
                received.append(text)
                if field in _REASONING:
                    self._facts.reasoned.setdefault(delta.choice, Pieces()).append(text)
            self._grow(_size(text))
        if ids := token_ids(delta.extra):
            received.append(ID * len(ids))
            self._grow(_ID_BYTES * len(ids))
        for fragment in delta.tools or ():
            received += [part for part in (fragment.name, fragment.arguments) if part]
            self._grow(len(fragment.arguments) + 64)

    def _keep(self, size: int) -> None:
        """For the limit: what is kept beside the texts, counted in whole frames, of which one may be a line long."""
        self._kept += size
        limit = self._setup.max_answer_bytes + self._setup.max_line_bytes
        if self._kept > limit:
            raise LimitExceeded("answer", limit, self._kept)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._setup.max_answer_bytes:
            raise LimitExceeded("answer", self._setup.max_answer_bytes, self._size)

    def _fold(self, choice: Choice, delta: Delta) -> None:
        """The client wants one body: keep the pieces."""
        for field, text in delta.texts.items():
            choice.texts.setdefault(field, []).append(text)
        for fragment in delta.tools or ():
            call, begins = choice.tools.place(fragment)
            call.name = call.name or fragment.name or ""
            if fragment.extra:
                call.extra = {**call.extra, **fragment.extra}
            self._keep(_STATE_BYTES if begins else 0)
        if delta.logprobs is not None or delta.extra:
            self._keep(self.frame_bytes)
        if delta.logprobs is not None:
            choice.logprobs.append(delta.logprobs)
        for name, value in delta.extra.items():
            if not is_empty(value):
                choice.extra[name] = _joined(choice.extra.get(name), value)

    # ---- events --------------------------------------------------------------------------------------------------

    def _write(
        self, chunk: Chunk, delta: Delta, choice: Choice, finish: str | None, progress: bool, now: float
    ) -> None:
        says = progress or delta.logprobs is not None or not all(map(is_empty, delta.extra.values()))
        if not says:
            self._write_little(chunk, delta, choice, finish)
            return
        if not progress and delta.finish is None and all(map(is_empty, delta.extra.values())):
            self._keep(self.frame_bytes)  # log probabilities alone: they go with the text that follows
            choice.logprobs.append(delta.logprobs)
            return
        passes = (
            chunk.wire is not None
            and finish is None
            and delta.finish is None
            and not delta.tools
            and (choice.fence is None or (choice.fence.decided and not choice.fence.repaired))
            and not choice.open
            and all(choice.passes(field, text) for field, text in delta.texts.items())
        )
        if not choice.role_sent and not (passes and delta.role):
            self._role(choice, None)
        elif choice.role_sent and delta.role:
            passes = False
        if passes:
            choice.role_sent = True
            fields: dict[str, object] = {**delta.texts, **delta.extra}
            if delta.role:
                fields = {"role": "assistant", **fields}
            self._facts.delivered_of(choice.index).extend(delta.texts.values())
            self._emit(_Event(chunk, choice.index, fields, delta.logprobs, delta.choice_extra, chunk.wire))
        else:
            self._rewrite(chunk, delta, choice, now)

    def _write_little(self, chunk: Chunk, delta: Delta, choice: Choice, finish: str | None) -> None:
        """No text: a role, a finish, or nothing at all."""
        if not choice.role_sent and (delta.role or finish is not None):
            self._role(choice, chunk if delta.finish is None and delta.role else None)
        elif finish is None and delta.finish is None and chunk.usage is None:
            self._facts.heartbeats += 1
            for name, value in delta.choice_extra.items():
                self._facts.note(name, value)

    def _role(self, choice: Choice, chunk: Chunk | None) -> None:
        choice.role_sent = True
        self._emit(_Event(chunk or choice.last, choice.index, _ROLE, wire=chunk.wire if chunk is not None else None))

    def _rewrite(self, chunk: Chunk, delta: Delta, choice: Choice, now: float) -> None:
        self._facts.altered = True
        fields: dict[str, object] = {}
        texts: dict[Key, str] = dict(delta.texts.items())
        if choice.fence is not None and "content" in texts:
            texts["content"] = choice.fence.feed(texts["content"])
        if choice.fence is not None and delta.tools and not choice.fence.decided and "content" in choice.seen:
            # Blanks before a tool call are no beginning of JSON: the call must not wait for more text.
            texts["content"] = texts.get("content", "") + choice.fence.finish()
        placed = [(fragment, *choice.tools.place(fragment)) for fragment in delta.tools or ()]
        self._keep(_STATE_BYTES * sum(begins for _, _, begins in placed))
        if choice.open:
            keep: set[Key] = {field for field, text in texts.items() if text}
            keep.update(call.slot for fragment, call, _ in placed if fragment.arguments)
            for fragment, call, _ in placed:
                if call is choice.pending and fragment.name:
                    call.grow(fragment.name)
                    fragment.name = None
            if placed and not texts and all(call is choice.pending and not f.arguments for f, call, _ in placed):
                keep.add(CALL)
            self._release(choice, choice.held(keep))
        begun = [field for field, text in texts.items() if text]
        for field, text in texts.items():
            out = choice.hold(field, text, now)
            # What follows in the same delta comes after this text, its tail included.
            if choice.holds[field].tail and (placed or field != begun[-1]) and not _is_twice(field, begun):
                out += choice.release(field, halves=True)
            if out:
                fields[str(field)] = out
                self._facts.delivered_of(choice.index).append(out)
        if fragments := self._fragments(choice, placed, now):
            fields["tool_calls"] = fragments
        fields.update(delta.extra)
        if choice.held_since:
            self._may_hold = True
            self._facts.held_chars += sum(len(choice.holds[key].tail) for key in choice.held_since if key != CALL)
        logprobs = delta.logprobs
        if logprobs is not None or choice.logprobs:
            if all(map(is_empty, fields.values())):
                if logprobs is not None:
                    choice.logprobs.append(logprobs)
                return
            logprobs = choice.take_logprobs(logprobs)
        if logprobs is not None or not all(map(is_empty, fields.values())):
            extra = delta.choice_extra if delta.finish is None else NOTHING
            self._emit(_Event(chunk, choice.index, fields, logprobs, extra))

    def _fragments(
        self, choice: Choice, placed: list[tuple[ToolFragment, Call, bool]], now: float
    ) -> list[dict[str, object]]:
        fragments: list[dict[str, object]] = []
        for fragment, call, begins in placed:
            if choice.pending is not None and (choice.pending is not call or fragment.arguments):
                fragments.append(self._beginning(choice))
            if (told := self._fragment(choice, fragment, call, begins, now)) is not None:
                fragments.append(told)
        return fragments

    def _beginning(self, choice: Choice) -> dict[str, object]:
        """The beginning of the call that was held."""
        call = choice.take_pending()
        assert call is not None, "asked only while one is held"
        self._facts.delivered_of(choice.index).append(call.name)
        function = {"name": call.name, "arguments": ""}
        return {"index": call.slot, "id": call.id, "type": call.type, "function": function}

    def _fragment(
        self, choice: Choice, fragment: ToolFragment, call: Call, begins: bool, now: float
    ) -> dict[str, object] | None:
        """One fragment in the client's grammar; None if there is nothing left to say, or its name may still grow."""
        if begins and fragment.name and not (fragment.arguments or fragment.extra) and self._setup.hold_s:
            call.name = fragment.name
            choice.pend(call, now)
            return None
        if choice.pending is call:
            return None
        out = choice.hold(call.slot, fragment.arguments, now) if fragment.arguments else ""
        # Once the arguments have begun, a name is one that is said again.
        grows = fragment.name and (not call.name or not any(call.arguments[:-1]))
        name = call.grow(fragment.name) if fragment.name and grows else ""
        self._facts.delivered_of(choice.index).extend(part for part in (name, out) if part)
        if not (begins or name or out or fragment.extra):
            return None
        function: dict[str, object] = {"arguments": out}
        if name:
            function = {"name": name, **function}
        told: dict[str, object] = {"index": call.slot}
        if begins:
            told |= {"id": call.id, "type": call.type}
        if call.type == "function":
            told["function"] = function
        return {**told, **fragment.extra}

    def _emit(self, one: _Event) -> None:
        if self._waiting is not None:
            self._keep(self.frame_bytes)
            self._waiting.append(one)
        else:
            self._encode(one)

    def _encode(self, one: _Event) -> None:
        if ids := token_ids(one.fields):
            self._facts.delivered_of(one.choice).append(ID * len(ids))
        if one.wire is not None and one.chunk is not None and self._writer.is_mine(one.chunk):
            self._facts.events_out += 1
            self._out.append(event(one.wire))
            return
        written = self._writer.event(
            one.chunk,
            one.choice,
            one.fields,
            finish=one.finish,
            word=one.word,
            logprobs=one.logprobs,
            choice_extra=one.choice_extra,
        )
        if written:
            self._facts.events_out += written.count(b"\n\n")  # which JSON cannot hold
            self._out.append(written)

    def commit(self) -> None:
        """Identity is settled: encode what waited."""
        waiting, self._waiting = self._waiting or [], None
        for one in waiting:
            self._encode(one)

    def append(self, data: bytes) -> None:
        """An event that is no chunk: the error event."""
        self._out.append(data)

    def take(self) -> bytes:
        if not self._out:
            return b""
        out, self._out = self._out, []
        return out[0] if len(out) == 1 else b"".join(out)

    # ---- runs of events that pass as they came -------------------------------------------------------------------

    @property
    def may_pass_run(self) -> bool:
        choice = self._choices.get(0)
        return choice is not None and not choice.open and self._may_say(choice)

    def _may_say(self, choice: Choice) -> bool:
        """May the choice's text go out with no more ado than its own hold?"""
        if self._waiting is not None or not choice.role_sent or choice.logprobs or choice.pending is not None:
            return False
        if any(hold.tail for key, hold in choice.holds.items() if key != "content") or "content" not in choice.holds:
            return False
        return choice.fence is None or (choice.fence.decided and not choice.fence.repaired)

    def passing(self, texts: list[str]) -> list[str]:
        """As many of these texts of choice 0 as leave whole, and within the limit."""
        choice = self._choices[0]
        joined = "".join(texts)
        if self._size + 4 * len(joined) > self._setup.max_answer_bytes:
            return []
        if joined.isascii() and choice.passes("content", joined):
            return texts
        for count, text in enumerate(texts):
            if not choice.passes("content", text):
                return texts[:count]
        return texts

    def say(self, text: str, data: bytes, shape: PlainShape, value: Mapping[str, Any], now: float) -> bool:
        """One event of nothing but choice 0's text, `value` of that `shape`: let its bytes `data` pass, or hold and
        rewrite as the ordinary path would. False, and nothing done, if it has to be the ordinary path."""
        choice = self._plain_choice
        if choice is None:
            choice = self._choices.get(0)
            if choice is None or not self._may_say(choice):
                return False
            self._plain_choice = choice
            self.spoke_on = self.spoke_on or choice.finish is not None
        hold = choice.holds["content"]
        size = len(text) if text.isascii() else len(text.encode())
        if self._size + size > self._setup.max_answer_bytes:
            return False
        facts = self._facts
        facts.received.append(text)
        facts.events_in += 1
        self._size += size
        if hold.would_pass(text):
            facts.delivered.append(text)
            facts.events_out += 1
            self._out.append(data)
            return True
        facts.altered = True
        out = choice.hold("content", text, now)
        choice.last, unknown = shape.unknown_of(value)
        if choice.held_since:
            self._may_hold = True
            facts.held_chars += len(hold.tail)
        if out:
            facts.delivered.append(out)
            self._encode(_Event(choice.last, 0, {"content": out}, choice_extra=unknown))
        return True

    def pass_run(self, texts: list[str], data: bytes) -> None:
        self.spoke_on = self.spoke_on or self._choices[0].finish is not None
        self._facts.received += texts
        self._facts.delivered += texts
        self._facts.events_in += len(texts)
        self._facts.events_out += len(texts)
        self._size += _size("".join(texts))
        self._out.append(data)

    # ---- held tails ----------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Let go of tails whose time has come; half a character goes on waiting for its other half."""
        for choice in self._choices.values():
            due = [key for key, since in choice.held_since.items() if since + self._setup.hold_s <= now]
            if due:
                self._release(choice, due, halves=False)

    def _release(self, choice: Choice, keys: list[Key], *, halves: bool = True) -> None:
        for key in keys:
            if key == CALL:
                begun = {"tool_calls": [self._beginning(choice)]}
                self._emit(_Event(choice.last, choice.index, begun, choice.take_logprobs(None)))
                continue
            text = choice.release(key, halves=halves)
            if not text:
                continue
            self._facts.delivered_of(choice.index).append(text)
            fields: dict[str, object] = {str(key): text}
            if isinstance(key, int):
                fields = {"tool_calls": [{"index": key, "function": {"arguments": text}}]}
            self._emit(_Event(choice.last, choice.index, fields, choice.take_logprobs(None)))

    def release(self) -> None:
        """Every tail and every doubt: something else of the stream is to follow."""
        for choice in self._choices.values():
            self._end_texts(choice)

    def _end_texts(self, choice: Choice) -> None:
        if not self._asked.stream:
            return
        rest = choice.fence.finish() if choice.fence is not None else ""
        if rest and (out := choice.hold("content", rest, 0.0)):
            self._facts.delivered_of(choice.index).append(out)
            self._emit(_Event(choice.last, choice.index, {"content": out}, choice.take_logprobs(None)))
        self._release(choice, choice.held(set()))

    # ---- the end -------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """The answer is complete: tails, arguments that never came, finishes."""
        for index in sorted(self._choices):
            choice = self._choices[index]
            self._end_texts(choice)
            choice.finish = corrected(choice.finish or "stop", choice.has_calls)
            if self._asked.stream:
                self._end_choice(choice)
            elif self._asked.json or self._writer.speaks is not None:
                self._strip(choice)
            else:
                self._facts.delivered_of(index).extend(self._facts.received_of(index))

    def _strip(self, choice: Choice) -> None:
        """What a client that asked for JSON in one body gets: the text without its fence, and the rest as it came."""
        self._facts.altered = True
        pieces = self._facts.delivered_of(choice.index)
        for field, texts in choice.texts.items():
            text = whole_text("".join(texts))
            if field == "content" and choice.fence is not None:
                text = choice.stripped = choice.fence.whole(text)
            pieces.append(text)
        pieces.append(ID * len(token_ids(choice.extra)))
        if self._writer.speaks is None:
            pieces.extend(part for call in choice.tools.calls for part in (call.name, *call.arguments))

    def _end_choice(self, choice: Choice) -> None:
        if not choice.role_sent:
            self._role(choice, None)
        calls_told = choice.tools.calls if self._writer.speaks is None else []
        functions = [call for call in calls_told if call.type == "function"]
        empty = [call for call in functions if call.is_bare]
        if empty:
            calls = [{"index": call.slot, "function": {"arguments": "{}"}} for call in empty]
            self._facts.delivered_of(choice.index).extend(["{}"] * len(calls))
            self._emit(_Event(None, choice.index, {"tool_calls": calls}))
        chunk, delta = choice.finish_chunk, choice.finish_delta
        wire = None
        if chunk is not None and delta is not None and not delta.texts and not delta.tools and delta.role is None:
            unchanged = delta.finish == choice.finish and delta.logprobs is None
            wire = chunk.wire if unchanged and all(map(is_empty, delta.extra.values())) else None
        extra = delta.choice_extra if delta is not None else NOTHING
        is_stripped = choice.fence is not None and choice.fence.repaired
        logprobs = choice.take_logprobs(None) if not is_stripped else None  # those of a fence go with the fence
        wire = wire if logprobs is None else None
        word = delta.finish if delta is not None else None
        self._emit(_Event(chunk, choice.index, {}, logprobs, extra, wire, choice.finish, word))

    def seal(self, count: Count) -> bytes:
        """What stands for `[DONE]`, with the usage before it if that was asked for."""
        usage, native = self._usage()
        return self._writer.seal(usage, native, count, wanted=self._asked.usage)

    def _usage(self) -> tuple[Usage, Mapping[str, object] | None]:
        """What the vendor reported, and its own object where the client knows its form. Characters are no tokens."""
        vendor = self._facts.vendor_usage
        if vendor is None or self._ways.usage.unit == "characters":
            return Usage(), None
        return understood(vendor, self._reader, self._ways.usage), vendor if self._is_native else None

    # ---- one body ------------------------------------------------------------------------------------------------

    def keep_body(self, body: bytes) -> None:
        """The answer came as one body: it is patched rather than built, so that unknown fields pass."""
        self._body = body

    def body(self, count: Count) -> bytes:
        """The whole answer as one chat.completion."""
        self._writer.settle()
        usage, native = self._usage()
        if self._body is not None and self._is_native:
            finishes = {index: choice.finish or "stop" for index, choice in self._choices.items()}
            return self._writer.patch(self._body, finishes, usage, native, count, self._content_of, self._setup.seed)
        choices = [self._folded(self._choices[index]) for index in sorted(self._choices)]
        extra = self._last.extra if self._last is not None else NOTHING
        return self._writer.body(choices, usage, native, count, extra)

    def _content_of(self, index: int, content: str) -> str:
        choice = self._choices.get(index)
        return content if choice is None or choice.stripped is None else choice.stripped

    def _folded(self, choice: Choice) -> dict[str, object]:
        texts = {field: whole_text("".join(pieces)) for field, pieces in choice.texts.items()}
        if "content" in texts:
            texts["content"] = self._content_of(choice.index, texts["content"])
        calls = [
            (call.id, call.name, whole_text("".join(call.arguments)) or "{}", call.extra) for call in choice.tools.calls
        ]
        extra: Mapping[str, object] = choice.finish_delta.choice_extra if choice.finish_delta is not None else NOTHING
        logprobs = choice.take_logprobs(None)
        word = choice.finish_delta.finish if choice.finish_delta is not None else None
        extra = {**extra, "native_finish": word} if word is not None and not self._is_native else extra
        return completion_choice(choice.index, texts, calls, choice.finish or "stop", logprobs, choice.extra, extra)


class _Event:
    """An event that is to be written: a chat.completion.chunk of one choice, or the bytes that say the same."""

    __slots__ = ("choice", "choice_extra", "chunk", "fields", "finish", "logprobs", "wire", "word")

    def __init__(
        self,
        chunk: Chunk | None,
        choice: int,
        fields: Mapping[str, object],
        logprobs: object = None,
        choice_extra: Mapping[str, object] = NOTHING,
        wire: bytes | None = None,
        finish: str | None = None,
        word: str | None = None,
    ) -> None:
        self.chunk, self.choice, self.fields = chunk, choice, fields
        self.word = word
        self.logprobs, self.choice_extra, self.wire, self.finish = logprobs, choice_extra, wire, finish


def token_ids(fields: Mapping[str, object]) -> Sequence[object]:
    """The ids that a delta brings instead of text."""
    ids = fields.get("token_ids")
    return ids if isinstance(ids, list) else ()


def _is_other_piece(delta: Delta) -> bool:
    """The one function call of older APIs, or a piece that only a client of the vendor's family can read (a search that
    the vendor runs), and no mere echo of the response so far."""
    if delta.extra.get("function_call") or "token_ids" in delta.extra:
        return True
    native = delta.extra.get("native")
    return isinstance(native, list) and any(map(_is_said, native))


def _is_said(native: object) -> bool:
    """Not so: the response so far, and the beginning of a text that is still to come."""
    if not isinstance(native, dict) or "response" in native or "part" in native:
        return False
    item = native.get("item")
    return not (isinstance(item, dict) and item.get("type") in ("message", "reasoning"))


def _is_twice(field: Key, begun: Sequence[Key]) -> bool:
    """Some vendors say reasoning by both its names in each delta: neither comes after the other."""
    return field == "reasoning_content" and begun[-1] == "reasoning"


def _joined(before: object, value: object) -> object:
    """Increments of an unknown field of the message: lists go on (annotations), a legacy function call's arguments too;
    of anything else the last one stands."""
    if isinstance(before, list) and isinstance(value, list):
        before += value
        return before
    if isinstance(before, dict) and isinstance(value, dict):
        one, more = before.get("arguments"), value.get("arguments")
        if isinstance(one, str) and isinstance(more, str):
            return {**before, **{k: v for k, v in value.items() if not is_empty(v)}, "arguments": one + more}
    return value


def _size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
