// What the tests use of `node:assert/strict`, in a browser.

const show = (value) => {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
};
const fail = (text, message) => {
  throw new Error(message ? `${message}: ${text}` : text);
};

/** Whether values are deeply equal, as `deepStrictEqual` compares the values of these tests. */
function isEqual(one, two) {
  if (Object.is(one, two)) return true;
  if (typeof one !== "object" || typeof two !== "object" || !one || !two) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(two)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(two).length &&
    names.every((name) => Object.hasOwn(two, name) && isEqual(one[name], two[name]));
}

/** Checks an error against a class, a predicate, or members that it must have. */
function matches(error, expected, message) {
  if (expected === undefined || typeof expected === "string") return;
  if (expected instanceof RegExp) {
    if (!expected.test(String(error))) fail(`${error} is not like ${expected}`, message);
  } else if (typeof expected === "function" && expected.prototype === undefined) {
    if (expected(error) !== true) fail(`the error is ${error}`, message);
  } else if (typeof expected === "function") {
    if (!(error instanceof expected))
      fail(`the error is ${error}, not a ${expected.name}`, message);
  } else {
    for (const name of Object.keys(expected)) {
      if (!isEqual(error[name], expected[name]))
        fail(`${name} of the error is ${show(error[name])}`, message);
    }
  }
}

const assert = {
  ok: (value, message) => value || fail(`${show(value)} is not true`, message),
  equal: (one, two, message) =>
    Object.is(one, two) || fail(`${show(one)} is not ${show(two)}`, message),
  notEqual: (one, two, message) => Object.is(one, two) && fail(`both are ${show(one)}`, message),
  deepEqual: (one, two, message) =>
    isEqual(one, two) || fail(`${show(one)} is not ${show(two)}`, message),
  throws(work, expected, message) {
    try {
      work();
    } catch (error) {
      return matches(error, expected, message);
    }
    fail("nothing was thrown", message);
  },
  async rejects(promise, expected, message) {
    try {
      await (typeof promise === "function" ? promise() : promise);
    } catch (error) {
      return matches(error, expected, message);
    }
    fail("it was not rejected", message);
  },
};
export default assert;
