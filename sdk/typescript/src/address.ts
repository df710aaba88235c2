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

/** An address from a node that is longer is taken for none. */
const LENGTH_MAX = 1024;

/**
 * The first of these addresses with the scheme of the present one; else the first with another
 * scheme of WebSockets that is not less secure.
 */
export function choose(addresses: string[], present: string): string | undefined {
  for (const scheme of present.startsWith("wss:") ? ["wss:"] : ["ws:", "wss:"]) {
    const found = addresses.find((one) => one.startsWith(scheme) && one.length <= LENGTH_MAX);
    try {
      if (found) return address(found);
    } catch {
      // It is no address.
    }
  }
}

/** Some addresses in a text. */
export const listed = (addresses: string[]): string =>
  addresses.slice(0, 3).join(", ").slice(0, 200) || "no address";
