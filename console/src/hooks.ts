/** What several views need. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { ApiError } from "./api.js";

export interface Polled<T> {
  value: T | null;
  error: ApiError | null;
  /** When the value came, in milliseconds since 1970. */
  at: number;
  /** Asks now. */
  again: () => void;
}

/** Asks at once, whenever `key` changes, and each `ms` after an answer while the page is visible. */
export function usePolled<T>(ask: () => Promise<T>, ms: number, key: string): Polled<T> {
  const [state, setState] = useState<Omit<Polled<T>, "again"> & { key: string }>({
    key,
    value: null,
    error: null,
    at: 0,
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
          if (!isOver) setState({ key, value, error: null, at: Date.now() });
        } catch (error) {
          const known = error instanceof ApiError ? error : new ApiError(0, String(error));
          // What is gone does not come back, and a refused token is not tried again unasked.
          isGone = known.status === 404 || known.status === 401;
          if (!isOver)
            setState((old) => ({
              ...(old.key === key ? old : { value: null, at: 0 }),
              key,
              error: known,
            }));
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
    at: isCurrent ? state.at : 0,
    again: () => setTurn((turn) => turn + 1),
  };
}

/** A text once it has not changed for so long. */
export function useSettled(text: string, ms: number): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), ms);
    return () => window.clearTimeout(timer);
  }, [text, ms]);
  return settled;
}

/** Whether a media query applies. */
export function useMedia(query: string): boolean {
  const [applies, setApplies] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const changed = (): void => setApplies(list.matches);
    changed();
    list.addEventListener("change", changed);
    return () => list.removeEventListener("change", changed);
  }, [query]);
  return applies;
}

const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex]";
const focusable = (of: Element): HTMLElement[] => [...of.querySelectorAll<HTMLElement>(FOCUSABLE)];

/**
 * Keeps the focus in an element whose contents are drawn again. Browsers take it from elements that
 * are moved or removed: a moved one gets it back; for a removed one, what took its place gets it.
 */
export function useFocusKept(within: RefObject<HTMLElement>): void {
  // While a component is called, its elements are as they were.
  const focused = document.activeElement;
  const parts: { part: Element; at: number }[] = [];
  if (focused && within.current?.contains(focused)) {
    for (let part = focused.parentElement; part; part = part.parentElement) {
      parts.push({ part, at: focusable(part).indexOf(focused as HTMLElement) });
      if (part === within.current) break;
    }
  }
  useLayoutEffect(() => {
    if (!parts.length || document.activeElement !== document.body) return;
    if (focused!.isConnected) return (focused as HTMLElement).focus({ preventScroll: true });
    for (const { part, at } of parts) {
      const left = part.isConnected ? focusable(part) : [];
      const next = left[Math.min(at, left.length - 1)];
      if (next) return next.focus({ preventScroll: true });
    }
  });
}

let hasNavigated = false;
/** Whether what is shown was changed since the page was opened. */
export const navigated = (): boolean => hasNavigated;
export const navigates = (): void => void (hasNavigated = true);

/** The part of the address behind `#`, which says what is shown. */
export function useHash(): string {
  const [hash, setHash] = useState(location.hash.slice(1));
  useEffect(() => {
    const changed = (): void => {
      navigates();
      setHash(location.hash.slice(1));
    };
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return hash;
}
