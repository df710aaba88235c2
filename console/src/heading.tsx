/** The heading of a view, which is also the document's title. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { navigated } from "./hooks.js";

/** Whoever goes to another view is at its heading. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => void (document.title = `${title} · Playfield console`), [title]);
  useEffect(() => {
    if (navigated()) heading.current?.focus();
  }, []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children ?? title}
    </h1>
  );
}
