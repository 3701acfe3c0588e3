// Runs the cases of one package for the integration tests (tests/support/node.py).
// In: on standard input a JSON list of cases, each with at least {name}; and `ask`, which puts what it sees into an
// object. Out: one JSON line per case: {name, ...seen}. What `ask` throws is put into `error` by `told`.
const AT_ONCE = 8;

export async function runCases(ask, told) {
  let input = "";
  for await (const piece of process.stdin) input += piece;
  const cases = JSON.parse(input);
  const take = async () => {
    for (let one = cases.shift(); one !== undefined; one = cases.shift()) {
      const seen = { text: "", reasoning: "", refusal: "", calls: null, finish: null, usage: null, error: null };
      try {
        await ask(one, seen);
      } catch (error) {
        seen.error = told(error);
      }
      console.log(JSON.stringify({ name: one.name, ...seen }));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
}

// The contract's error, and what the package made of it.
export function describe(error, inner) {
  return {
    exception: error?.constructor?.name ?? String(error),
    message: String(error?.message),
    status: error?.status ?? null,
    type: inner?.type ?? null,
    code: inner?.code ?? null,
    trace_id: inner?.trace_id ?? null,
  };
}
