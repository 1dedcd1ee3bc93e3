import type { ComponentChildren } from "preact";

export const Field = ({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) => (
  <label class="field">
    <span>{label}</span>
    {children}
    {hint && <small>{hint}</small>}
  </label>
);

interface TextGiven {
  value: string;
  set: (value: string) => void;
  label?: string;
  placeholder?: string;
  type?: "text" | "password" | "number" | "search";
  rows?: number;
  invalid?: boolean;
  list?: string;
  autofocus?: boolean;
  name?: string;
  autocomplete?: string;
}

export function Text({ value, set, label, rows, invalid, autofocus, ...rest }: TextGiven) {
  const given = {
    class: "input",
    value,
    spellcheck: false,
    "aria-label": label,
    "aria-invalid": invalid || undefined,
    autoFocus: autofocus,
    onInput: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value),
    ...rest,
  };
  return rows ? <textarea {...(given as object)} rows={rows} /> : <input {...(given as object)} />;
}

interface ChoiceGiven {
  value: string;
  set: (value: string) => void;
  of: readonly (readonly [string, string])[];
  label?: string;
}

export const Choice = ({ value, set, of, label }: ChoiceGiven) => (
  <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
    {of.map(([key, text]) => (
      <option key={key} value={key}>
        {text}
      </option>
    ))}
  </select>
);

export const Check = ({
  on,
  set,
  children,
}: {
  on: boolean;
  set: (on: boolean) => void;
  children: ComponentChildren;
}) => (
  <label class="check">
    <input type="checkbox" checked={on} onChange={(event) => set(event.currentTarget.checked)} />
    {children}
  </label>
);
