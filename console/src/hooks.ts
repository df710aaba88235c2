/** What several views need. */

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError } from "./api.js";

export interface Polled<T> {
  value: T | null;
  error: ApiError | null;
  /** Asks now. */
  again: () => void;
}

/** Asks at once, whenever `key` changes, and each `ms` after an answer while the page is visible. */
export function usePolled<T>(ask: () => Promise<T>, ms: number, key: string): Polled<T> {
  const [state, setState] = useState<{ key: string; value: T | null; error: ApiError | null }>({
    key,
    value: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    let isOver = false,
      isGone = false,
      timer = 0;
    const run = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const value = await latest.current();
          if (!isOver) setState({ key, value, error: null });
        } catch (error) {
          const known = error instanceof ApiError ? error : new ApiError(0, String(error));
          // What is gone does not come back.
          isGone = known.status === 404;
          if (!isOver)
            setState((old) => ({ key, value: old.key === key ? old.value : null, error: known }));
        }
      }
      if (!isOver && !isGone) timer = window.setTimeout(run, ms);
    };
    void run();
    return () => {
      isOver = true;
      window.clearTimeout(timer);
    };
  }, [key, ms, turn]);
  const isCurrent = state.key === key;
  return {
    value: isCurrent ? state.value : null,
    error: isCurrent ? state.error : null,
    again: () => setTurn((turn) => turn + 1),
  };
}

/** The part of the address behind `#`, which says what is shown. */
export function useHash(): [string, (hash: string) => void] {
  const [hash, setHash] = useState(location.hash.slice(1));
  useEffect(() => {
    const changed = (): void => setHash(location.hash.slice(1));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return [hash, (hash) => (location.hash = hash)];
}
