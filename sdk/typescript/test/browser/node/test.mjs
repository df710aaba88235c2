// What the tests use of `node:test`, in a browser.

const tests = [];

export function test(name, work) {
  tests.push({ name, work });
}

/** Timers that only the test advances, as `t.mock.timers`. */
function mockedTimers() {
  const { setTimeout, clearTimeout } = globalThis;
  let time = 0, made = 0, waiting = [];
  return {
    enable: () => {
      globalThis.setTimeout = (call, wait) => {
        waiting.push({ call, at: time + Math.max(1, wait || 1), id: ++made });
        return made;
      };
      globalThis.clearTimeout = (timer) => (waiting = waiting.filter(({ id }) => id !== timer));
    },
    tick: (span) => {
      const until = time + span, isDue = ({ at }) => at <= until;
      while (waiting.some(isDue)) {
        const [first] = waiting.filter(isDue).sort((a, b) => a.at - b.at || a.id - b.id);
        globalThis.clearTimeout(first.id);
        time = first.at;
        first.call();
      }
      time = until;
    },
    reset: () => Object.assign(globalThis, { setTimeout, clearTimeout }),
  };
}

/** Runs all tests one after the other, and returns their names and what went wrong. */
export async function run() {
  const results = [];
  for (const { name, work } of tests.splice(0)) {
    const timers = mockedTimers(), afters = [timers.reset];
    let error = null;
    try {
      await work({ mock: { timers }, after: (after) => afters.push(after) });
    } catch (caught) {
      error = String(caught?.stack ?? caught);
    }
    for (const after of afters) await after();
    results.push({ name, error });
  }
  return results;
}
