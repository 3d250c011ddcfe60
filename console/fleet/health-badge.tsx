import { Ago } from '../parts/time.js';
import type { Health } from './health.js';

/** How something fares, and since when. */
export function HealthBadge({ health: { tone, text, since } }: { health: Health }) {
  return (
    <span className={`badge ${tone}`}>
      {text}
      {since && (
        <>
          {' '}
          for <Ago at={since} short />
        </>
      )}
    </span>
  );
}
