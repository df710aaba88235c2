/** Settings in force, and how near the limits of the node are. */

import { useState } from "preact/hooks";

import type { Overview } from "./api.js";

export function Settings({ node }: { node: Overview }) {
  const [find, setFind] = useState("");
  const [onlyChanged, setOnlyChanged] = useState(false);
  const shown = node.settings.filter(
    ({ name, help, value, default: own }) =>
      (name.includes(find) || help.includes(find)) && (!onlyChanged || value !== own),
  );
  return (
    <section aria-label="Settings" class="settings">
      <h2>Limits</h2>
      <ul class="limits">
        {node.limits.map(({ name, now, max, reached }) => (
          <li key={name} class={reached && reached.times > 0 ? "reached" : ""}>
            <label>
              <code>{name}</code>{" "}
              {now === null ? (
                `at most ${max.toLocaleString()}`
              ) : (
                <>
                  <meter min={0} max={max} high={max * 0.8} optimum={0} value={now} />{" "}
                  {now.toLocaleString()} of {max.toLocaleString()}
                </>
              )}
            </label>
            {reached && (
              <span title={reached.counter}> reached {reached.times.toLocaleString()} times</span>
            )}
          </li>
        ))}
      </ul>
      <h2>Settings</h2>
      <form class="filter" onSubmit={(event) => event.preventDefault()}>
        <label>
          Find{" "}
          <input
            type="search"
            value={find}
            onInput={(event) => setFind(event.currentTarget.value)}
          />
        </label>
        <label>
          <input
            type="checkbox"
            checked={onlyChanged}
            onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
          />{" "}
          changed only
        </label>
      </form>
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>Value</th>
            <th>Default</th>
            <th>What it does</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ name, value, default: own, help }) => (
            <tr key={name} class={value === own ? "" : "changed"}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>
                <bdi>{value}</bdi>
              </td>
              <td>{own}</td>
              <td>{help}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h2>Counters</h2>
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>Sum</th>
            {node.shards.map((_, shard) => (
              <th>Shard {shard}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Object.entries(node.total).map(([name, sum]) => (
            <tr key={name}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>{sum.toLocaleString()}</td>
              {node.shards.map((shard) => (
                <td>{(shard[name] ?? 0).toLocaleString()}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
