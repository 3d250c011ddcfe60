import { type ReactNode, useState } from 'react';
import { CopyCurl } from './copy.js';
import { Dialog } from './dialog.js';

interface Asked {
  /** What the button says that does it. */
  label: string;
  /** Names what is about to change. */
  question: string;
  /** Whether it cannot be taken back. */
  danger?: boolean;
  /** The call that is made. */
  curl?: { path: string; body: unknown };
  onConfirm: () => void;
  children: ReactNode;
}

/** Asks once before something is done. */
export function ConfirmDialog(props: Asked & { close: () => void }) {
  const { label, question, danger = false, curl, onConfirm, close, children } = props;
  return (
    <Dialog label={question} onClose={close}>
      <h2>{question}</h2>
      {children}
      <div className="buttons">
        <button
          type="button"
          className={danger ? 'no' : 'yes'}
          onClick={() => {
            close();
            onConfirm();
          }}
        >
          {label}
        </button>
        <button type="button" onClick={close}>
          Leave it
        </button>
        {curl && <CopyCurl {...curl} />}
      </div>
    </Dialog>
  );
}

/** A button that asks once before it acts. */
export function Confirm({ disabled = false, ...asked }: Asked & { disabled?: boolean }) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <button type="button" disabled={disabled} onClick={() => setAsks(true)}>
        {asked.label}
      </button>
      {asks && <ConfirmDialog {...asked} close={() => setAsks(false)} />}
    </>
  );
}
