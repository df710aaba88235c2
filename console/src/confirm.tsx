/** A dialog that asks before something is done to players, and for a reason. */

import { useId, useLayoutEffect, useRef } from "preact/hooks";

/** The node takes 500 bytes. */
const REASON_LENGTH = 160;

interface ConfirmProps {
  title: string;
  /** What will happen. */
  text: string;
  /** What the button says that does it. */
  action: string;
  /** Called with the reason, which may be empty, or with `null`. */
  decided: (reason: string | null) => void;
}

export function Confirm({ title, text, action, decided }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const reason = useRef<HTMLInputElement>(null);
  const [titleId, textId] = [useId(), useId()];
  // Before the next key is pressed.
  useLayoutEffect(() => dialog.current!.showModal(), []);
  const closed = (): void =>
    decided(dialog.current!.returnValue === "do" ? reason.current!.value.trim() : null);
  return (
    <dialog ref={dialog} aria-labelledby={titleId} aria-describedby={textId} onClose={closed}>
      <form method="dialog">
        <h2 id={titleId}>{title}</h2>
        <p id={textId}>{text}</p>
        <label>
          Reason, shown to the player (optional)
          <input ref={reason} name="reason" maxLength={REASON_LENGTH} autoComplete="off" autoFocus />
        </label>
        <div class="actions">
          {/* The first button is the one that Enter presses. */}
          <button class="danger" value="do">
            {action}
          </button>
          <button type="button" onClick={() => dialog.current!.close("")}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}
