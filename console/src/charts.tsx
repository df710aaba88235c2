/** Charts of the last two minutes. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { InspectedRoom, Overview } from "./api.js";

const POINTS = 120;
const HEIGHT = 90;

interface Chart<T> {
  title: string;
  of: (now: T, before: T, seconds: number) => number;
}

const rate =
  (name: string): Chart<Record<string, number>>["of"] =>
  (now, before, seconds) =>
    Math.max(0, (now[name] ?? 0) - (before[name] ?? 0)) / seconds;

const OF_NODE: Chart<Record<string, number>>[] = [
  { title: "Connections", of: (now) => now.connections ?? 0 },
  { title: "Messages in per second", of: rate("messages_in") },
  { title: "Messages out per second", of: rate("messages_out") },
  { title: "Kilobytes out per second", of: (...args) => rate("bytes_out")(...args) / 1000 },
  { title: "Ticks per second", of: rate("ticks") },
  { title: "Syncs missed per second", of: rate("syncs_missed") },
];

const OF_ROOM: Chart<InspectedRoom>[] = [
  { title: "Players", of: ({ players }) => players },
  {
    title: "Microseconds per sync",
    of: ({ load: { ticks_us, sync_us, patches_us } }) => ticks_us + sync_us + patches_us,
  },
  { title: "Milliseconds late", of: ({ load }) => load.late_us / 1000 },
  {
    title: "Bytes in per second",
    of: ({ load: now }, { load: before }, seconds) => (now.bytes_in - before.bytes_in) / seconds,
  },
  {
    title: "Bytes out per second",
    of: ({ load: now }, { load: before }, seconds) => (now.bytes_out - before.bytes_out) / seconds,
  },
];

interface Sample<T> {
  at: number;
  value: T;
}

export const Charts = ({ node }: { node: Overview }) => (
  <Lines label="Charts" charts={OF_NODE} value={node.total} />
);

export const RoomCharts = ({ room }: { room: InspectedRoom }) => (
  <Lines label="Charts of the room" charts={OF_ROOM} value={room} />
);

function Lines<T>({ label, charts, value }: { label: string; charts: Chart<T>[]; value: T }) {
  const samples = useRef<Sample<T>[]>([]);
  if (samples.current.at(-1)?.value !== value) {
    samples.current = [...samples.current, { at: Date.now() / 1000, value }].slice(-POINTS - 1);
  }
  return (
    <section class="charts" aria-label={label}>
      {charts.map((chart) => (
        <Line chart={chart} samples={samples.current} />
      ))}
    </section>
  );
}

function Line<T>({ chart, samples }: { chart: Chart<T>; samples: Sample<T>[] }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const times: number[] = [],
    values: number[] = [];
  for (let at = 1; at < samples.length; at++) {
    const now = samples[at]!,
      before = samples[at - 1]!;
    times.push(now.at);
    values.push(chart.of(now.value, before.value, Math.max(now.at - before.at, 0.001)));
  }
  useEffect(() => {
    const element = place.current!;
    plot.current = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: true }, y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [{ show: false }, { size: 46, stroke: "#888", grid: { stroke: "#8883" } }],
        series: [{}, { stroke: "#3b82f6", width: 1.5, fill: "#3b82f622" }],
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
  const now = values.at(-1) ?? 0;
  return (
    <figure>
      <figcaption>
        {chart.title} <output>{now.toLocaleString(undefined, { maximumFractionDigits: 1 })}</output>
      </figcaption>
      <div ref={place} />
    </figure>
  );
}
