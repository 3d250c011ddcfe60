/** What the address of the guards says: the guard that is shown beside the list. */
export interface GuardsSearch {
  guard?: string;
}

/** Reads an address that anybody may have written: what does not fit is left out. */
export function parseGuardsSearch({ guard }: Record<string, unknown>): GuardsSearch {
  return typeof guard === 'string' && /^[a-z_]{1,64}$/.test(guard) ? { guard } : {};
}
