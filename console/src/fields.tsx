/** A form for a value, made from its type. */

import type { Json } from "./api.js";
import { initial, type Field, type Type, variant } from "./schema.js";

interface ValueProps {
  type: Type;
  value: Json;
  change: (value: Json) => void;
  /** What it is called: the name of the field. */
  label?: string;
}

const INTEGER = /^[ui](8|16|32|64)$|^player$/;

export function ValueForm({ type, value, change, label = "Value" }: ValueProps) {
  if (typeof type === "string")
    return <Plain type={type} value={value} change={change} label={label} />;
  if ("quantized" in type) return <Plain type="f64" value={value} change={change} label={label} />;
  if ("option" in type) {
    return (
      <div class="group">
        <label>
          <input
            type="checkbox"
            checked={value !== null}
            onChange={(event) => change(event.currentTarget.checked ? initial(type.option) : null)}
          />{" "}
          present
        </label>
        {value !== null && (
          <ValueForm type={type.option} value={value} change={change} label={label} />
        )}
      </div>
    );
  }
  if ("struct" in type) return <Fields fields={type.fields} value={value} change={change} />;
  if ("enum" in type) {
    const name = typeof value === "string" ? value : (Object.keys(value ?? {})[0] ?? "");
    const chosen = type.variants.find((variant) => variant.name === name);
    const inner =
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? (value[name] ?? null)
        : null;
    const choose = (name: string): void =>
      change(variant(type.variants.find((of) => of.name === name)!));
    return (
      <div class="group">
        <select
          value={name}
          onChange={(event) => choose(event.currentTarget.value)}
          aria-label={`${label}: variant`}
        >
          {type.variants.map(({ name }) => (
            <option>{name}</option>
          ))}
        </select>
        {chosen && chosen.fields.length > 0 && (
          <Fields
            fields={chosen.fields}
            value={inner}
            change={(inner) => change({ [name]: inner })}
          />
        )}
      </div>
    );
  }
  if ("list" in type || "array" in type) {
    const items = Array.isArray(value) ? value : [];
    const of = "list" in type ? type.list : type.array;
    return (
      <div class="group">
        {items.map((item, at) => (
          <div>
            <ValueForm
              type={of}
              value={item}
              change={(item) => change(items.with(at, item))}
              label={`${label} ${at + 1}`}
            />
            {"list" in type && (
              <button type="button" onClick={() => change(items.toSpliced(at, 1))}>
                Remove
              </button>
            )}
          </div>
        ))}
        {"list" in type && (
          <button type="button" onClick={() => change([...items, initial(of)])}>
            Add
          </button>
        )}
      </div>
    );
  }
  return <AsJson value={value} change={change} label={label} />;
}

function Fields({
  fields,
  value,
  change,
}: {
  fields: Field[];
  value: Json;
  change: (value: Json) => void;
}) {
  if (!fields.length) return null;
  if (fields[0]!.name === "0") {
    if (fields.length === 1)
      return <ValueForm type={fields[0]!.type} value={value} change={change} />;
    const items = Array.isArray(value) ? value : fields.map(({ type }) => initial(type));
    return (
      <div class="group">
        {fields.map(({ type }, at) => (
          <ValueForm
            type={type}
            value={items[at] ?? null}
            change={(item) => change(items.with(at, item))}
          />
        ))}
      </div>
    );
  }
  const object = typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  return (
    <fieldset>
      {fields.map(({ name, type }) => (
        <div class="field">
          <span class="name">{name}</span>
          <ValueForm
            type={type}
            value={object[name] ?? initial(type)}
            change={(inner) => change({ ...object, [name]: inner })}
            label={name}
          />
        </div>
      ))}
    </fieldset>
  );
}

interface PlainProps {
  type: string;
  value: Json;
  change: (value: Json) => void;
  label: string;
}

function Plain({ type, value, change, label }: PlainProps) {
  if (type === "unit") return null;
  if (type === "bool") {
    return (
      <input
        type="checkbox"
        aria-label={label}
        checked={value === true}
        onChange={(event) => change(event.currentTarget.checked)}
      />
    );
  }
  if (type === "text" || type === "bytes") {
    return (
      <input
        type="text"
        aria-label={label}
        value={String(value ?? "")}
        placeholder={type === "bytes" ? "base64" : ""}
        onInput={(event) => change(event.currentTarget.value)}
      />
    );
  }
  const read = (text: string): Json => {
    const number = Number(text);
    // A number that JSON can't hold exactly is sent as a text.
    return Number.isSafeInteger(number) || !INTEGER.test(type) ? number : text;
  };
  return (
    <input
      type="number"
      aria-label={label}
      step={INTEGER.test(type) ? 1 : "any"}
      value={String(value ?? 0)}
      onInput={(event) => change(read(event.currentTarget.value))}
    />
  );
}

/** Maps and sets are written as JSON. */
function AsJson({ value, change, label }: Omit<PlainProps, "type">) {
  const read = (element: HTMLTextAreaElement): void => {
    try {
      change(JSON.parse(element.value) as Json);
      element.setCustomValidity("");
    } catch {
      element.setCustomValidity("This is not JSON.");
    }
  };
  return (
    <textarea aria-label={`${label}, as JSON`} onInput={(event) => read(event.currentTarget)}>
      {JSON.stringify(value)}
    </textarea>
  );
}
