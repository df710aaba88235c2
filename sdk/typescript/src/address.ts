/** The URL of the node's WebSocket. A path is at the host that served the page. */
export function address(url = "/"): string {
  const { protocol, host, href = protocol && `${protocol}//${host}/` } =
    (globalThis.location ?? {}) as Partial<Location>;
  let at;
  try {
    at = new URL(url, href);
  } catch {
    throw new Error(`url is ${JSON.stringify(url)}, which names no host, and no page does`);
  }
  const schemes: Record<string, string> = { "http:": "ws:", "https:": "wss:" };
  const scheme = schemes[at.protocol] ?? at.protocol;
  if (!["ws:", "wss:"].includes(scheme)) {
    const uses = "use wss://, ws://, https://, http:// or a path";
    throw new Error(`url is ${JSON.stringify(url)}; ${uses}`);
  }
  return `${scheme}//${at.host}${at.pathname}${at.search}`;
}
