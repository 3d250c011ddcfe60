import type { PolicyRequest } from '../types.js';
import { Budget } from './budget.js';
import { type Places, placesIn } from './places.js';

/** Facts of a request that are not known yet and will be. */
export type LaterFact = 'agent_type' | 'instance_id' | 'skill_id';

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
    this.#places ??= placesIn(this.request.arguments ?? {});
    return this.#places;
  }
}
