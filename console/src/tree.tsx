/** A value as a tree that opens and closes, with what has just changed marked. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Json } from "./api.js";
import { member, membersOf, type Policy, type Type } from "./schema.js";

/** How many members of a large value are drawn at first, and with each "more". */
const MEMBERS = 200;
/** As much is open at first as fits into so many lines. */
const LINES_OPEN = 100,
  SMALL = 12;
/** The longest text that is drawn; all of it is in the tooltip, up to a limit. */
const TEXT_LENGTH = 120,
  TITLE_LENGTH = 4000;
/** How much of what a closed branch holds is shown beside it. */
const PREVIEW_MEMBERS = 8,
  PREVIEW_DIGITS = 6,
  PREVIEW_LENGTH = 80;
const CHANGED_MS = 800;

/** The paths of members that are marked as changed, with their old values, if those are shown. */
export type Marks = ReadonlyMap<string, Json | undefined>;

interface TreeProps {
  value: Json;
  type?: Type | undefined;
  label: string;
  policies?: boolean;
  /** The marked places, instead of the latest changes. */
  marks?: Marks | undefined;
}

export function Tree({ value, type, label, policies = false, marks }: TreeProps) {
  const list = useRef<HTMLUListElement>(null);
  // The Tab key stops at one item: the last that had the focus.
  const stop = (item: HTMLElement): void => {
    for (const old of list.current!.querySelectorAll<HTMLElement>('[tabindex="0"]'))
      old.tabIndex = -1;
    item.tabIndex = 0;
  };
  useLayoutEffect(() => {
    const first = list.current!.querySelector<HTMLElement>("[role=treeitem]");
    if (first && !list.current!.querySelector('[tabindex="0"]')) stop(first);
  });
  return (
    <ul
      class="tree"
      role="tree"
      aria-label={label}
      ref={list}
      onFocusIn={(event) => stop(event.target as HTMLElement)}
      onKeyDown={(event) => moved(event, list.current!)}
    >
      <Members
        value={value}
        type={type}
        policies={policies}
        marks={marks}
        level={1}
        path=""
        opened={openedAtFirst(value)}
      />
    </ul>
  );
}

/** The keys that move between items, as the ARIA Authoring Practices describe them for trees. */
function moved(event: KeyboardEvent, list: HTMLElement): void {
  const item = document.activeElement as HTMLElement;
  if (event.defaultPrevented || !list.contains(item)) return;
  const items = [...list.querySelectorAll<HTMLElement>("[role=treeitem]")];
  const at = items.indexOf(item);
  const child = item.querySelector<HTMLElement>("[role=treeitem]"),
    parent = item.parentElement!.closest<HTMLElement>("[role=treeitem]");
  const to: Record<string, HTMLElement | null | undefined> = {
    ArrowDown: items[at + 1],
    ArrowUp: items[at - 1],
    ArrowRight: child,
    ArrowLeft: parent,
    Home: items[0],
    End: items.at(-1),
  };
  if (!(event.key in to)) return;
  event.preventDefault();
  to[event.key]?.focus();
}

const isParent = (value: Json): value is Json[] | { [name: string]: Json } =>
  typeof value === "object" && value !== null && Object.keys(value).length > 0;

const inside = (path: string, name: string): string => `${path}/${name}`;

interface Branch {
  path: string;
  members: [string, Json][];
}

/** The branches among members. Of a very large value, later ones do not fit anyway. */
const branchesOf = ({ path, members }: Branch): Branch[] =>
  members
    .slice(0, LINES_OPEN)
    .filter(([, value]) => isParent(value))
    .map(([name, value]) => ({ path: inside(path, name), members: Object.entries(value!) }));

const linesOf = (branches: Branch[]): number =>
  branches.reduce((sum, { members }) => sum + members.length, 0);

/**
 * The paths of the branches that are open at first. Branches beside each other open together, if all
 * of their level fit or they are small, so that one ship looks like the next. Those at the top differ:
 * each opens if it fits.
 */
function openedAtFirst(value: Json): ReadonlySet<string> {
  const opened = new Set<string>();
  if (!isParent(value)) return opened;
  const root: Branch = { path: "", members: Object.entries(value) };
  let lines = root.members.length;
  let groups = branchesOf(root)
    .map((branch) => [branch])
    .sort((one, other) => linesOf(one) - linesOf(other));
  for (let isTop = true; groups.length > 0; isTop = false) {
    const fitsAll = lines + linesOf(groups.flat()) <= LINES_OPEN;
    const open = groups.filter((group) => {
      const more = linesOf(group);
      if (lines + more > LINES_OPEN || !(fitsAll || isTop || more <= SMALL)) return false;
      lines += more;
      return true;
    });
    for (const { path } of open.flat()) opened.add(path);
    groups = open.flat().map(branchesOf).filter((group) => group.length > 0);
  }
  return opened;
}

interface MembersProps extends Omit<TreeProps, "label"> {
  level: number;
  path: string;
  opened: ReadonlySet<string>;
}

function Members({ value, type, policies, marks, level, path, opened }: MembersProps) {
  const [shown, setShown] = useState(MEMBERS);
  if (!isParent(value))
    return (
      <li role="treeitem" aria-level={level} tabIndex={-1}>
        <Leaf value={value} />
      </li>
    );
  const entries = membersOf(value, type);
  const more = (): void => setShown(shown + MEMBERS);
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
            marks={marks}
            level={level}
            path={inside(path, name)}
            opened={opened}
          />
        );
      })}
      {entries.length > shown && (
        <li
          role="treeitem"
          aria-level={level}
          tabIndex={-1}
          onClick={more}
          onKeyDown={(event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            more();
          }}
        >
          <span class="item more">{(entries.length - shown).toLocaleString()} more</span>
        </li>
      )}
    </>
  );
}

interface ItemProps extends MembersProps {
  name: string;
  policy: Policy;
}

function Item(props: ItemProps) {
  const { name, value, type, policy, policies, marks, level, path, opened } = props;
  const hasParts = isParent(value);
  const [isOpen, setOpen] = useState(opened.has(path));
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
  // A branch that is open shows what changed in it.
  const isMarked = marks ? marks.has(path) && !(hasParts && isOpen) : isChanged;
  const old = hasParts ? undefined : marks?.get(path);
  const keys = (event: KeyboardEvent): void => {
    // Keys of inner items pass by here.
    if (event.target !== event.currentTarget || !hasParts) return;
    const opens = { ArrowRight: true, ArrowLeft: false, Enter: !isOpen, " ": !isOpen }[event.key];
    if (opens === undefined || opens === isOpen) return;
    event.preventDefault();
    setOpen(opens);
  };
  return (
    <li
      role="treeitem"
      aria-level={level}
      aria-expanded={hasParts ? isOpen : undefined}
      tabIndex={-1}
      onKeyDown={keys}
    >
      <span
        class={`item ${hasParts ? "branch" : ""} ${isMarked ? "changed" : ""}`}
        onClick={() => hasParts && setOpen(!isOpen)}
      >
        <span class="twisty" aria-hidden="true">
          {hasParts ? (isOpen ? "▾" : "▸") : ""}
        </span>
        <bdi class="name">{cut(name)}</bdi>
        {policies && policy && <span class={`badge ${policy}`}>{policy}</span>}{" "}
        {hasParts ? (
          <>
            <span class="count">
              {Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`}
            </span>
            {!isOpen && <bdi class="preview">{preview(value, type)}</bdi>}
          </>
        ) : (
          <>
            {old !== undefined && (
              <>
                <Leaf value={old} /> →{" "}
              </>
            )}
            <Leaf value={value} />
          </>
        )}
      </span>
      {hasParts && isOpen && (
        <ul role="group">
          <Members
            value={value}
            type={type}
            policies={policies ?? false}
            marks={marks}
            level={level + 1}
            path={path}
            opened={opened}
          />
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

const cut = (text: string, length = TEXT_LENGTH): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;

const brief = (value: Json): string =>
  JSON.stringify(typeof value === "number" ? Number(value.toPrecision(PREVIEW_DIGITS)) : value);

/** The beginning of what a branch holds. */
function preview(value: Json[] | { [name: string]: Json }, type: Type | undefined): string {
  const first = Array.isArray(value)
    ? value.slice(0, PREVIEW_MEMBERS).map(brief)
    : membersOf(value, type)
        .slice(0, PREVIEW_MEMBERS)
        .map(([name, inner]) => `${name}: ${brief(inner)}`);
  const more = Object.keys(value).length > PREVIEW_MEMBERS ? ", …" : "";
  return cut(first.join(", ") + more, PREVIEW_LENGTH);
}
