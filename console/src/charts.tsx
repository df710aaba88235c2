/** Charts of the last two minutes. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { InspectedRoom, Overview } from "./api.js";
import { short, total } from "./units.js";

const SECONDS = 120;
/** Without a value for so long, the line has a gap. */
const GAP_S = 8;
const HEIGHT = 84;

interface Chart<T> {
  title: string;
  of: (now: T, before: T, seconds: number) => number;
}

const rate =
  (name: string): Chart<Overview>["of"] =>
  ({ total: now }, { total: before }, seconds) =>
    Math.max(0, (now[name] ?? 0) - (before[name] ?? 0)) / seconds;

const OF_NODE: Chart<Overview>[] = [
  { title: "Connections", of: ({ total }) => total.connections ?? 0 },
  { title: "Messages in per s", of: rate("messages_in") },
  { title: "Messages out per s", of: rate("messages_out") },
  { title: "Bytes out per s", of: rate("bytes_out") },
  { title: "Ticks per s", of: rate("ticks") },
  { title: "Syncs missed per s", of: rate("syncs_missed") },
];

const OF_ROOM: Chart<InspectedRoom>[] = [
  { title: "Players", of: ({ players }) => players },
  {
    title: "Longest sync in 10 s, µs",
    of: ({ load: { longest } }) => (longest === null ? 0 : total(longest)),
  },
  { title: "Late, ms", of: ({ load }) => load.late_us / 1000 },
  {
    title: "Bytes in per s",
    of: ({ load: now }, { load: before }, seconds) => (now.bytes_in - before.bytes_in) / seconds,
  },
  {
    title: "Bytes out per s",
    of: ({ load: now }, { load: before }, seconds) => (now.bytes_out - before.bytes_out) / seconds,
  },
];

export interface Sample<T> {
  at: number;
  value: T;
}

/** The values of the last two minutes. */
export function useSamples<T>(value: T | null): Sample<T>[] {
  const samples = useRef<Sample<T>[]>([]);
  if (value !== null && samples.current.at(-1)?.value !== value) {
    const at = Date.now() / 1000;
    const recent = samples.current.filter((sample) => sample.at > at - SECONDS - 2);
    samples.current = [...recent, { at, value }];
  }
  return samples.current;
}

export const Charts = ({ samples }: { samples: Sample<Overview>[] }) => (
  <Lines label="Charts" charts={OF_NODE} samples={samples} />
);

export const RoomCharts = ({ room }: { room: InspectedRoom }) => (
  <Lines label="Charts of the room" charts={OF_ROOM} samples={useSamples(room)} />
);

interface LinesProps<T> {
  label: string;
  charts: Chart<T>[];
  samples: Sample<T>[];
}

const Lines = <T,>({ label, charts, samples }: LinesProps<T>) => (
  <section class="charts" aria-label={label}>
    {charts.map((chart) => (
      <Line key={chart.title} chart={chart} samples={samples} />
    ))}
  </section>
);

const color = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name);

function Line<T>({ chart, samples }: { chart: Chart<T>; samples: Sample<T>[] }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const times: number[] = [],
    values: (number | null)[] = [];
  for (let at = 1; at < samples.length; at++) {
    const now = samples[at]!,
      before = samples[at - 1]!;
    if (now.at - before.at > GAP_S) {
      times.push((now.at + before.at) / 2);
      values.push(null);
    }
    times.push(now.at);
    values.push(chart.of(now.value, before.value, Math.max(now.at - before.at, 0.001)));
  }
  useEffect(() => {
    const element = place.current!;
    plot.current = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        padding: [8, 2, 4, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: true, range: (_, __, max) => [max - SECONDS, max] },
          y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] },
        },
        axes: [
          { show: false },
          {
            size: 40,
            gap: 4,
            space: 22,
            font: "11px system-ui, sans-serif",
            stroke: () => color("--axis"),
            grid: { stroke: () => color("--grid"), width: 1 },
            ticks: { show: false },
            values: (_, labels) => labels.map((label) => short(label)),
          },
        ],
        series: [
          {},
          {
            stroke: () => color("--chart"),
            width: 1.5,
            fill: () => color("--chart-fill"),
            points: { show: false },
          },
        ],
      },
      [[], []],
      element,
    );
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData([times, values]), [samples]);
  return (
    <figure>
      <figcaption>
        {chart.title} <output aria-live="off">{values.length ? short(values.at(-1)!) : "–"}</output>
      </figcaption>
      <div ref={place} />
    </figure>
  );
}
