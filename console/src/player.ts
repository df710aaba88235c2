/** Plays a recording: holds the steps around the present one, and asks the node for others. */

import { useEffect, useRef, useState } from "preact/hooks";

import * as api from "./api.js";
import { type Step, stepsOf } from "./excerpt.js";

/** How many steps are asked for before and behind a moment, and while it plays. */
const BEFORE = 20,
  BEHIND = 60,
  PLAYED = 200;
/** The number of steps kept behind the present one during playback. */
const KEPT = 100;
/** More are asked for when fewer than these are left. */
const LEFT_MIN = 60;
/** The time between two steps that are shown while it plays. */
const FRAME_MS = 50;

export type Query = { input: number } | { tick: number } | { at_ms: number };

interface Shown {
  steps: Step[];
  place: number;
  /** Each input has a step. */
  isExact: boolean;
  isOver: boolean;
}

const NOTHING: Shown = { steps: [], place: 0, isExact: true, isOver: false };

/** The player of the recording, and the moment that is shown. */
export type Player = ReturnType<typeof usePlayer>;

export function usePlayer(
  file: string,
  room: string,
  { first, last }: api.Recording,
  viewer: number | null,
) {
  const [shown, setShown] = useState<Shown>(NOTHING);
  const [difference, setDifference] = useState<api.Difference | null>(null);
  const [refused, setRefused] = useState("");
  const [said, setSaid] = useState("");
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [followed, follow] = useState("");
  // An answer counts only if nothing was asked for since.
  const asked = useRef(0);
  useEffect(() => () => void asked.current++, []);
  const now = useRef(shown);
  now.current = shown;
  const present = shown.steps[shown.place];

  /** Asks, and takes the answer if it is still wanted. */
  const ask = async <T>(question: Promise<T>, take: (answer: T) => void): Promise<void> => {
    const number = ++asked.current;
    try {
      const answer = await question;
      if (number !== asked.current) return;
      setRefused("");
      take(answer);
    } catch (error) {
      if (number === asked.current) setRefused((error as Error).message);
    }
  };

  const load = (query: Query): Promise<void> =>
    ask(
      api.excerpt(file, room, { ...query, before: BEFORE, count: BEHIND, as: viewer }),
      (excerpt) => {
        const steps = stepsOf(excerpt);
        const at = steps.findIndex(({ input }) => input === excerpt.input);
        // Up to where the room is the same as when it was recorded.
        const place = at < 0 ? steps.length - 1 : at;
        setShown({ steps, place, isExact: true, isOver: excerpt.over });
        setDifference((known) => excerpt.difference ?? (at < 0 ? known : null));
      },
    );

  const go = (query: Query): void => {
    setPlaying(false);
    setSaid("");
    const { steps, isExact } = now.current;
    const at = "input" in query ? steps.findIndex(({ input }) => input === query.input) : -1;
    if (at >= 0 && isExact) {
      asked.current++;
      setShown((shown) => ({ ...shown, place: at }));
    } else void load(query);
  };

  const stepBy = (by: number): void => {
    const { steps, place } = now.current;
    const present = steps[place];
    if (!present) return;
    const input = present.input + by;
    if (input >= first.input && input <= last.input) go({ input });
  };

  // Another player's view of the same moment.
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else if (present) void load({ input: present.input });
  }, [viewer]);

  // Plays: at each moment the last step until then is shown.
  useEffect(() => {
    if (!isPlaying || !present) return;
    const began = performance.now(),
      from = present.at_ms;
    let isAsking = false;
    const more = async (): Promise<void> => {
      const end = now.current.steps.at(-1);
      if (isAsking || !end || now.current.isOver) return;
      isAsking = true;
      const every = Math.max(FRAME_MS, FRAME_MS * speed);
      await ask(
        api.excerpt(file, room, { input: end.input, count: PLAYED, every_ms: every, as: viewer }),
        (excerpt) => {
          const next = stepsOf(excerpt).slice(1);
          setDifference(excerpt.difference);
          setShown(({ steps, place }) => {
            const cut = Math.max(0, place - KEPT);
            const isOver = excerpt.over || next.length === 0;
            return {
              steps: [...steps.slice(cut), ...next],
              place: place - cut,
              isExact: false,
              isOver,
            };
          });
        },
      );
      isAsking = false;
    };
    const timer = window.setInterval(() => {
      const { steps, place, isOver } = now.current;
      const until = from + (performance.now() - began) * speed;
      let next = place;
      while (next + 1 < steps.length && steps[next + 1]!.at_ms <= until) next++;
      if (next !== place) setShown((shown) => ({ ...shown, place: next }));
      if (steps.length - next < LEFT_MIN) void more();
      if (isOver && next === steps.length - 1) setPlaying(false);
    }, FRAME_MS);
    return () => window.clearInterval(timer);
  }, [isPlaying, speed, viewer]);

  const play = (plays: boolean): void => {
    setSaid("");
    setPlaying(plays);
    // The rest is shown input by input again.
    if (!plays && present) void load({ input: present.input });
  };

  const search = async (of: Omit<api.Search, "from">): Promise<void> => {
    if (!present) return;
    setPlaying(false);
    setSaid("Searching…");
    let from: number | undefined = present.input;
    while (from !== undefined) {
      let answer: api.Found | null = null;
      const number = asked.current + 1;
      await ask(api.search(file, room, { ...of, from }), (found) => (answer = found));
      const found = answer as api.Found | null;
      if (number !== asked.current) return;
      if (!found) return setSaid("");
      if (found.found) return go({ input: found.found.input });
      if (found.difference) {
        setDifference(found.difference);
        return setSaid("Nothing up to where it differs from what was recorded.");
      }
      from = found.until;
      if (from !== undefined) setSaid(`Searching: nothing up to input ${from.toLocaleString()}…`);
    }
    setSaid(of.back ? "Nothing before." : "Nothing further.");
  };

  return {
    ...shown,
    step: present,
    difference,
    refused,
    said,
    isPlaying,
    speed,
    followed,
    go,
    stepBy,
    play,
    setSpeed,
    follow,
    search: (of: Omit<api.Search, "from">): void => void search(of),
  };
}
