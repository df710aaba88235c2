/** A value as a tree that opens and closes, with what has just changed marked. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Json } from "./api.js";
import { member, membersOf, type Policy, type Type } from "./schema.js";

/** How many members of a large value are drawn at first, and with each "more". */
const MEMBERS = 200;
/** Larger values are closed at first. */
const OPEN_MEMBERS = 12;
/** The longest text that is drawn; all of it is in the tooltip, up to a limit. */
const TEXT_LENGTH = 120,
  TITLE_LENGTH = 4000;
const CHANGED_MS = 800;

interface TreeProps {
  value: Json;
  type?: Type | undefined;
  label: string;
  policies?: boolean;
}

export function Tree({ value, type, label, policies = false }: TreeProps) {
  const list = useRef<HTMLUListElement>(null);
  return (
    <ul
      class="tree"
      role="tree"
      aria-label={label}
      ref={list}
      onKeyDown={(event) => moved(event, list.current!)}
    >
      <Members value={value} type={type} policies={policies} level={1} />
    </ul>
  );
}

/** Arrow keys move between the items in sight, as in trees everywhere. */
function moved(event: KeyboardEvent, list: HTMLElement): void {
  const items = [...list.querySelectorAll<HTMLElement>("[role=treeitem] > .item")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  items[Math.min(Math.max(to, 0), items.length - 1)]?.focus();
}

const isParent = (value: Json): value is Json[] | { [name: string]: Json } =>
  typeof value === "object" && value !== null && Object.keys(value).length > 0;

interface MembersProps extends Omit<TreeProps, "label"> {
  level: number;
}

function Members({ value, type, policies, level }: MembersProps) {
  const [shown, setShown] = useState(MEMBERS);
  if (!isParent(value))
    return (
      <li role="none">
        <Leaf value={value} />
      </li>
    );
  const entries = membersOf(value, type);
  return (
    <>
      {entries.slice(0, shown).map(([name, inner]) => {
        const of = member(type, name);
        return (
          <Item
            key={name}
            name={name}
            value={inner}
            type={of.type}
            policy={of.policy}
            policies={policies}
            level={level}
          />
        );
      })}
      {entries.length > shown && (
        <li role="none">
          <button onClick={() => setShown(shown + MEMBERS)}>
            {(entries.length - shown).toLocaleString()} more
          </button>
        </li>
      )}
    </>
  );
}

interface ItemProps extends MembersProps {
  name: string;
  policy: Policy;
}

function Item({ name, value, type, policy, policies, level }: ItemProps) {
  const hasParts = isParent(value);
  const [isOpen, setOpen] = useState(
    level <= 2 && hasParts && Object.keys(value).length <= OPEN_MEMBERS,
  );
  const text = JSON.stringify(value);
  const before = useRef(text);
  const [isChanged, setChanged] = useState(false);
  useEffect(() => {
    if (before.current === text) return;
    before.current = text;
    setChanged(true);
    const timer = setTimeout(() => setChanged(false), CHANGED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const keys = (event: KeyboardEvent): void => {
    if (!hasParts || !["ArrowRight", "ArrowLeft", "Enter", " "].includes(event.key)) return;
    event.preventDefault();
    setOpen(event.key === "ArrowRight" || (event.key !== "ArrowLeft" && !isOpen));
  };
  return (
    <li role="treeitem" aria-level={level} aria-expanded={hasParts ? isOpen : undefined}>
      <span
        class={`item ${isChanged ? "changed" : ""}`}
        tabIndex={0}
        onKeyDown={keys}
        onClick={() => hasParts && setOpen(!isOpen)}
      >
        <span class="twisty">{hasParts ? (isOpen ? "▾" : "▸") : ""}</span>
        <bdi class="name">{cut(name)}</bdi>
        {policies && policy && <span class={`badge ${policy}`}>{policy}</span>}{" "}
        {hasParts ? (
          <span class="count">
            {Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}
          </span>
        ) : (
          <Leaf value={value} />
        )}
      </span>
      {hasParts && isOpen && (
        <ul role="group">
          <Members value={value} type={type} policies={policies ?? false} level={level + 1} />
        </ul>
      )}
    </li>
  );
}

function Leaf({ value }: { value: Json }) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const kind = value === null ? "null" : typeof value;
  return (
    <bdi
      class={`leaf ${kind}`}
      title={text.length > TEXT_LENGTH ? text.slice(0, TITLE_LENGTH) : undefined}
    >
      {typeof value === "string" ? `"${cut(value)}"` : cut(text)}
    </bdi>
  );
}

const cut = (text: string): string =>
  text.length > TEXT_LENGTH ? `${text.slice(0, TEXT_LENGTH)}…` : text;
