import type { Credential } from '../../contracts/api/auth.js';
import { isPerson, standingOf } from './search.js';

/** How a credential stands, where that is worth a word. */
export function StandingBadge({ credential }: { credential: Credential }) {
  const standing = standingOf(credential, Date.now());
  if (standing === 'revoked') return <span className="badge bad">revoked</span>;
  if (standing === 'expired') return <span className="badge wait">expired</span>;
  return isPerson(credential) ? <span className="badge busy">person</span> : null;
}
