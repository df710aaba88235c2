// What the tests use of `node:fs`, in a browser: files of the scenario server.

export function readFileSync(url) {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.send();
  if (request.status !== 200) throw new Error(`${url}: status ${request.status}`);
  return request.responseText;
}

/** The names in the folders that the runner knows to be needed. */
export const readdirSync = (url) => globalThis.folders[new URL(url).pathname];
