import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Delivery } from '../../contracts/api/deliveries.js';
import { call } from '../api/call.js';
import { forEach } from '../api/for-each.js';
import { Confirm } from '../parts/confirm.js';

/** Sends all that is selected again, after one confirmation. */
export function ResendBar({ deliveries, clear }: { deliveries: readonly Delivery[]; clear: () => void }) {
  const client = useQueryClient();
  const [progress, setProgress] = useState<number | null>(null);
  const [refused, setRefused] = useState<ReadonlyMap<string, number>>(new Map());
  const count = deliveries.length;
  const send = async () => {
    setProgress(0);
    const codes = await forEach(
      deliveries,
      ({ delivery_id }) => call('/webhooks/redeliver', { delivery_id }),
      () => setProgress((now) => (now ?? 0) + 1),
    );
    setProgress(null);
    setRefused(codes);
    void client.invalidateQueries({ queryKey: ['deliveries'] });
    if (codes.size === 0) clear();
  };
  return (
    <section className="bulk" aria-label="Selected deliveries">
      <strong>{progress === null ? `${count} selected` : `${progress} of ${count} done`}</strong>
      {refused.size > 0 && (
        <span className="problem" role="alert">
          {[...refused].map(([code, many]) => `${many} refused: ${code}`).join(', ')}
        </span>
      )}
      <Confirm
        label={`Send ${count} again`}
        question={count === 1 ? 'Send 1 delivery again?' : `Send ${count} deliveries again?`}
        disabled={progress !== null}
        curl={{ path: '/webhooks/redeliver', body: { delivery_id: deliveries[0]?.delivery_id } }}
        onConfirm={() => void send()}
      >
        <p>Each goes out with the same body and the same delivery id. Receivers that have seen it should drop it.</p>
      </Confirm>
      <button type="button" onClick={clear}>
        Clear
      </button>
    </section>
  );
}
