/** Settings in force, and how near the limits of the node are. */

import { useState } from "preact/hooks";

import type { Overview } from "./api.js";
import { Find } from "./find.js";
import { Heading } from "./heading.js";

export function Settings({ node }: { node: Overview | null }) {
  return (
    <section aria-label="Settings" class="settings">
      <Heading title="Settings and limits" />
      {node ? (
        <>
          <Limits node={node} />
          <InForce node={node} />
          <Counters node={node} />
        </>
      ) : (
        <p>Waiting for the node…</p>
      )}
    </section>
  );
}

function Limits({ node }: { node: Overview }) {
  return (
    <>
      <h2>Limits</h2>
      <ul class="limits">
        {node.limits.map(({ name, now, max, reached }) => (
          <li key={name} class={reached && reached.times > 0 ? "reached" : ""}>
            <code>{name}</code>
            {now === null ? (
              <span class="now">at most {max.toLocaleString()}</span>
            ) : (
              <>
                <meter
                  min={0}
                  max={max}
                  high={max * 0.8}
                  optimum={0}
                  value={now}
                  aria-label={name}
                />
                <span class="now">
                  {now.toLocaleString()} of {max.toLocaleString()}
                </span>
              </>
            )}
            {reached && (
              <span class="times" title={reached.counter}>
                {reached.times > 0
                  ? `reached ${reached.times.toLocaleString()} times`
                  : "never reached"}
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function InForce({ node }: { node: Overview }) {
  const [find, setFind] = useState("");
  const [onlyChanged, setOnlyChanged] = useState(false);
  const shown = node.settings.filter(
    ({ name, help, value, default: own }) =>
      (name.includes(find) || help.includes(find)) && (!onlyChanged || value !== own),
  );
  return (
    <>
      <h2>In force</h2>
      <form class="filter" onSubmit={(event) => event.preventDefault()}>
        <Find value={find} change={setFind} />
        <label>
          <input
            type="checkbox"
            checked={onlyChanged}
            onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
          />{" "}
          changed only
        </label>
      </form>
      <table class="in-force">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
            <th scope="col">Default</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ name, value, default: own, help }) => (
            <tr key={name} class={value === own ? "" : "changed"}>
              <th scope="row">
                <code>{name}</code>
                <span class="help">{help}</span>
              </th>
              <td>
                <bdi>{value}</bdi>
              </td>
              <td>{own}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p>No setting fits.</p>}
    </>
  );
}

function Counters({ node }: { node: Overview }) {
  return (
    <>
      <h2 id="counters">Counters</h2>
      {/* A node may have many shards. */}
      <div class="wide" role="region" aria-labelledby="counters" tabIndex={0}>
        <table class="counters">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Sum</th>
              {node.shards.map((_, shard) => (
                <th scope="col">Shard {shard}</th>
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
                  <td>{shard[name]?.toLocaleString()}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
