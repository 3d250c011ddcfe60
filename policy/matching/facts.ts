import { type Places, placesIn } from '../places/places.js';
import type { PolicyRequest } from '../policy-request.js';
import { Budget } from './budget.js';

/** What is not known yet about a request and will be: members of `agent` and `session`, and what webhooks say. */
export type LaterFact = 'agent_type' | 'instance_id' | 'skill_id' | 'user_id' | 'webhook';

/** Units of `Budget` to look for places in one character. */
const PLACES_CHAR_COST = 2;

/** What one decision is made from. */
export class Facts {
  readonly budget = new Budget();
  #places: Places | undefined;

  constructor(
    readonly tenantId: string,
    readonly request: PolicyRequest,
    readonly later: readonly LaterFact[] = [],
  ) {}

  /** Read from the arguments once. */
  get places(): Places {
    if (!this.#places) {
      this.#places = placesIn(this.request.arguments ?? {});
      this.budget.spend(this.#places.chars * PLACES_CHAR_COST);
    }
    return this.#places;
  }
}
