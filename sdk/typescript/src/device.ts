/** What a connection is registered as in a fleet (docs/protocol.md, "Devices"). */

import { call } from "./callbacks.js";
import type { Code } from "./codes.js";
import { type MakePart, type Mutable, PASSING, RETRY_MS } from "./links.js";
import type { Message } from "./messages.js";
import { free, freed } from "./payloads.js";
import type { Device, DeviceCallbacks } from "./types.js";

interface Inside {
  on: DeviceCallbacks;
  message: Message;
  timer?: ReturnType<typeof setTimeout>;
}

type Registered = { isNew: boolean; bytes: boolean };

export const makeDevices: MakePart = (connection, links) => {
  const { format, post, ask, end, request, answer, isReady } = links;
  let device: Inside | null = null, session = 0, isBytes = false;
  // What an answer says, by the request's number: the connection resolves it when it is read.
  const registered = ({ is_new: isNew, bytes = false }: Message): Registered => {
    isBytes = bytes;
    return { isNew, bytes };
  };

  const renew = (): void => {
    const inside = device;
    if (!inside || !isReady()) return;
    const reject = (code: Code, text: string, retryMs = RETRY_MS): void => {
      if (device !== inside || code === "connection_lost") return;
      if (PASSING.includes(code)) return void (inside.timer = setTimeout(renew, retryMs));
      device = null;
      call(inside.on, "unregistered", code, text);
    };
    const resolve = (answer: Message): void => call(inside.on, "registered", registered(answer));
    ask(inside.message, { resolve, reject });
  };

  const obey = async ({ command, payload }: Message): Promise<void> => {
    const now = session;
    // Of frames that are read at once, the answer to `register` may be the one before.
    await null;
    let value, answer;
    try {
      value = freed(format, payload, isBytes);
    } catch (error) {
      return end("bad_message", `a command can't be read: ${(error as Error).message}`);
    }
    if (command === undefined && !device?.on.command) return;
    try {
      if (!device?.on.command) throw new Error("the device takes no commands");
      answer = { payload: free(format, await device.on.command(value), isBytes) };
    } catch (error: any) {
      if (command === undefined) throw error; // It is reported as uncaught.
      answer = { error: String(error?.message ?? error) };
    }
    if (command !== undefined && session === now) post({ type: "answer", command, ...answer });
  };

  connection.register = (id, on = {}, { metadata, tags } = {}) => {
    const handle = { connection, id } as Mutable<Device>;
    const inside: Inside = { on, message: { type: "register", device: id, metadata, tags } };
    const report = (payload: unknown): Message => ({
      type: "report",
      payload: free(format, payload, isBytes),
    });
    handle.report = async (payload, how) =>
      freed(format, await request(report(payload), how), isBytes);
    handle.reportUnconfirmed = (payload) => post(report(payload)) > 0;
    handle.registered = request(inside.message).then(
      (answer) => {
        clearTimeout(device?.timer);
        device = inside;
        call(on, "registered", registered(answer));
        return handle;
      },
      (error) => {
        call(on, "unregistered", error.code, error.message);
        throw error;
      },
    );
    // `unregistered` says so too.
    handle.registered.catch(() => {});
    return handle;
  };

  return {
    begin: (isNew) => {
      if (isNew) renew();
    },
    forget: () => void (session += 1),
    end: (code, text) => {
      clearTimeout(device?.timer);
      if (device) call(device.on, "unregistered", code, text);
    },
    handlers: {
      registered: (message) => answer(message, message),
      command: (message) => void obey(message),
    },
  };
};
