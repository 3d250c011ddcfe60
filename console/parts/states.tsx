import type { ReactNode } from 'react';
import type { RequestOutcome } from '../../contracts/api/messages.js';
import { ApiError } from '../api/call.js';

/** Something has failed: what, and what to do next. */
export function Failed({ error, retry }: { error: unknown; retry: () => void }) {
  const { code, message } = error instanceof ApiError ? error : { code: 'INTERNAL_ERROR', message: String(error) };
  return (
    <div className="empty" role="alert">
      <h2>{code === 'NOT_FOUND' ? 'This is not here' : 'This cannot be shown now'}</h2>
      <p>
        {message} <code>{code}</code>
      </p>
      {code === 'NOT_FOUND' ? (
        <p className="quiet">It may be of another tenant, erased, or not yours to see.</p>
      ) : (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A call that failed, beside what caused it. */
export function Problem({ error }: { error: unknown }) {
  if (!error) return null;
  const { code, message } = error instanceof ApiError ? error : { code: 'INTERNAL_ERROR', message: String(error) };
  return (
    <p className="problem" role="alert">
      {message} <code>{code}</code>
    </p>
  );
}

/** No row of a list matches its filters. @param all leads to the list without them */
export function NoMatch({ title = 'Nothing matches', all }: { title?: string | undefined; all: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {all}
    </div>
  );
}

/** Grey bars where something is about to be. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div className="loading" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: all are the same
        <div key={index} />
      ))}
    </div>
  );
}

const TONES: Record<string, string> = {
  ...{ completed: 'good', succeeded: 'good' },
  ...{ failed: 'bad', critical: 'bad' },
  ...{ 'input-required': 'wait', pending: 'wait', warning: 'wait', working: 'busy' },
  ...{ proposed: 'wait', paused: 'wait', running: 'busy', active: 'busy', processing: 'busy' },
};

/** A state as a coloured word. */
export function Badge({ state, label = state }: { state: string; label?: string }) {
  return <span className={`badge ${TONES[state] ?? ''}`}>{label}</span>;
}

const OUTCOMES: Record<RequestOutcome['state'], string> = {
  pending: 'under way',
  succeeded: 'succeeded',
  failed: 'failed',
  expired: 'never used',
};

/** What became of an approval. */
export function Outcome({ outcome }: { outcome: RequestOutcome }) {
  const code = outcome.error_code ? `: ${outcome.error_code}` : '';
  return <Badge state={outcome.state} label={`${OUTCOMES[outcome.state]}${code}`} />;
}
