/** The URL of the node's WebSocket. A path is at the host that served the page. */
export function address(url = "/"): string {
  const { protocol, host, href = protocol && `${protocol}//${host}/` } =
    (globalThis.location ?? {}) as Partial<Location>;
  try {
    const at = new URL(url, href), scheme = at.protocol.replace("http", "ws");
    if (/^wss?:$/.test(scheme)) return `${scheme}//${at.host}${at.pathname}${at.search}`;
  } catch {
    // Refused below.
  }
  const uses = "use wss://, ws://, https:// or http://, or in a page a path";
  throw new Error(`url is ${JSON.stringify(url)}; ${uses}`);
}
