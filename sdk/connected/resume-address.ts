import type { ConnectionEnd } from './mesh-connection.js';

/** Longest address that is taken from a `welcome`. */
const ADDRESS_CHARS_MAX = 2_048;
/** Attempts at the address of the node when each is answered with 401: the second has a new token. */
const ATTEMPTS_MAX = 2;

/** The address of the node that holds the agent's work, as its `welcome` gave it: it is tried before the agent's usual address. */
export class ResumeAddress {
  #url: string | null = null;
  #attempts = 0;

  /** Takes the address of the newest `welcome`. @param connectedTo the address of its connection */
  set(resumeUrl: unknown, connectedTo: string): void {
    this.#url = acceptableAddress(resumeUrl, connectedTo);
    this.#attempts = 0;
  }

  /** The node keeps nothing for the agent, or stops. */
  forget(): void {
    this.#url = null;
  }

  /** The address for the next attempt; null: the agent's usual one. */
  next(): string | null {
    if (this.#url !== null) this.#attempts += 1;
    return this.#url;
  }

  /** An attempt at this address brought no `welcome`. */
  failed({ httpStatus }: ConnectionEnd): void {
    if (httpStatus !== 401 || this.#attempts >= ATTEMPTS_MAX) this.#url = null;
  }
}

/**
 * The address when the agent may send its token there; null otherwise. Over a connection with TLS only an address with TLS counts, so that a
 * `welcome` cannot make the agent show its token in the clear.
 */
function acceptableAddress(given: unknown, connectedTo: string): string | null {
  if (typeof given !== 'string' || given.length > ADDRESS_CHARS_MAX || !URL.canParse(given)) return null;
  const url = new URL(given);
  const current = new URL(connectedTo);
  url.protocol = url.protocol.replace(/^http/, 'ws');
  const isAllowed = url.protocol === 'wss:' || (url.protocol === 'ws:' && current.protocol === 'ws:');
  if (!isAllowed || url.username !== '' || url.password !== '') return null;
  url.hash = ''; // a WebSocket address has none
  url.searchParams.set('instance_id', current.searchParams.get('instance_id') ?? '');
  return url.href;
}
