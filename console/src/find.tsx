/** The field that narrows a list. */

interface FindProps {
  value: string;
  change: (value: string) => void;
  placeholder?: string;
}

export function Find({ value, change, placeholder }: FindProps) {
  return (
    <label class="find">
      Find{" "}
      <input
        type="search"
        placeholder={placeholder}
        value={value}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </label>
  );
}
