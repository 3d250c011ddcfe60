import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Delivery } from '../../contracts/api/deliveries.js';
import { call } from '../api/call.js';
import { CopyCurl, Id } from '../parts/copy.js';
import { Ago } from '../parts/time.js';

function Row({ delivery }: { delivery: Delivery }) {
  const { delivery_id, event_type, url, attempts } = delivery;
  const client = useQueryClient();
  const last = attempts.at(-1);
  const again = useMutation({
    mutationFn: () => call('/webhooks/redeliver', { delivery_id }),
    onSettled: () => client.invalidateQueries({ queryKey: ['deliveries'] }),
  });
  return (
    <li>
      <span className="cut">
        <strong>{event_type}</strong> <span className="quiet">to {url}</span>
      </span>
      <span className="quiet small">
        {last && (
          <>
            {last.status_code ?? last.error ?? 'no answer'}, <Ago at={last.at} />, after {attempts.length}{' '}
            {attempts.length === 1 ? 'attempt' : 'attempts'} · <Id id={delivery_id} />
          </>
        )}
      </span>
      <span className="actions">
        <button type="button" disabled={again.isPending || again.isSuccess} onClick={() => again.mutate()}>
          Send again
        </button>
        <CopyCurl path="/webhooks/redeliver" body={{ delivery_id }} />
        {again.error && (
          <span className="problem" role="alert">
            {again.error.message}
          </span>
        )}
      </span>
    </li>
  );
}

/** Deliveries that were given up, the newest first. */
export function Deliveries({ deliveries }: { deliveries: readonly Delivery[] }) {
  return (
    <ul className="deliveries" aria-label="Deliveries that failed">
      {deliveries.map((delivery) => (
        <Row key={delivery.delivery_id} delivery={delivery} />
      ))}
    </ul>
  );
}
