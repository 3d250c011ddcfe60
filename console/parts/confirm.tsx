import { type ReactNode, useState } from 'react';
import { CopyCurl } from './copy.js';
import { Dialog } from './dialog.js';

/**
 * A button that asks once before it acts.
 * @param props.label what the button and the confirmation say
 * @param props.question names what it is about to change
 * @param props.curl the call that it makes
 */
export function Confirm(props: {
  label: string;
  question: string;
  danger?: boolean;
  disabled?: boolean;
  curl: { path: string; body: unknown };
  onConfirm: () => void;
  children: ReactNode;
}) {
  const { label, question, danger = false, disabled = false, curl, onConfirm, children } = props;
  const [asks, setAsks] = useState(false);
  return (
    <>
      <button type="button" disabled={disabled} onClick={() => setAsks(true)}>
        {label}
      </button>
      {asks && (
        <Dialog label={question} onClose={() => setAsks(false)}>
          <h2>{question}</h2>
          {children}
          <div className="buttons">
            <button
              type="button"
              className={danger ? 'no' : 'yes'}
              onClick={() => {
                setAsks(false);
                onConfirm();
              }}
            >
              {label}
            </button>
            <button type="button" onClick={() => setAsks(false)}>
              Leave it
            </button>
            <CopyCurl {...curl} />
          </div>
        </Dialog>
      )}
    </>
  );
}
