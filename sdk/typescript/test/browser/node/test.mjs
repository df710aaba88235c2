// What the tests use of `node:test`, in a browser.

const tests = [];

export function test(name, work) {
  tests.push({ name, work });
}

/** Runs all tests one after the other, and returns their names and what went wrong. */
export async function run() {
  const results = [];
  for (const { name, work } of tests.splice(0)) {
    const afters = [];
    let error = null;
    try {
      await work({ after: (after) => afters.push(after) });
    } catch (caught) {
      error = String(caught?.stack ?? caught);
    }
    for (const after of afters) await after();
    results.push({ name, error });
  }
  return results;
}
