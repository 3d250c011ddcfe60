import type { AgentError } from '../agent/agent-error.js';
import type { AgentLog } from '../log.js';
import type { ConnectionEnd } from './mesh-connection.js';
import type { Registration } from './registration.js';
import { ResumeAddress } from './resume-address.js';

const HANDSHAKE_TIMEOUT_MS = 15_000;
/** Time limit for an attempt to resume at the node's own address, so that the resume window is not spent on one that does not answer. */
const RESUME_TIMEOUT_MS = 5_000;

/** Where and with what the next connection is made. */
export interface ConnectTarget {
  /** `wss` address with the `instance_id`. */
  url: string;
  token: string;
  /** Time limit for the handshake, and again for `welcome`. */
  handshakeTimeoutMs: number;
  /** It is the own address of the node that holds the agent's work. */
  isOwnAddress: boolean;
}

export interface ConnectTargetsOptions {
  registration: Registration;
  /** 15 s by default. */
  handshakeTimeoutMs: number | undefined;
  log: AgentLog;
}

/** Chooses the address of each connection: first that of the node that holds the agent's work, then the one of the registration. */
export class ConnectTargets {
  readonly #options: ConnectTargetsOptions;
  readonly #resumeAddress = new ResumeAddress();

  constructor(options: ConnectTargetsOptions) {
    this.#options = options;
  }

  /** @throws as `Registration.connectTarget` */
  async next(signal: AbortSignal, onSlow: (error: AgentError) => void): Promise<ConnectTarget> {
    const { registration, handshakeTimeoutMs = HANDSHAKE_TIMEOUT_MS } = this.#options;
    const { url, token } = await registration.connectTarget(signal, onSlow);
    const ownAddress = this.#resumeAddress.next();
    if (ownAddress === null) return { url, token, handshakeTimeoutMs, isOwnAddress: false };
    const limitMs = Math.min(handshakeTimeoutMs, RESUME_TIMEOUT_MS);
    return { url: ownAddress, token, handshakeTimeoutMs: limitMs, isOwnAddress: true };
  }

  /** @param resumeUrl of the newest `welcome`. @param connectedTo the address of its connection */
  welcomed(resumeUrl: string | undefined, connectedTo: string): void {
    this.#resumeAddress.set(resumeUrl, connectedTo);
  }

  /** The node keeps nothing for the agent, or stops. */
  leaveNode(): void {
    this.#resumeAddress.forget();
  }

  /** An attempt at the node's own address brought no `welcome`. @returns 0: the usual address follows without a wait */
  notResumed(end: ConnectionEnd, token: string): 0 {
    const { registration, log } = this.#options;
    this.#resumeAddress.failed(end);
    if (end.httpStatus === 401) registration.connectionEnded(end, token);
    log.debug({ http_status: end.httpStatus, message: end.message }, 'the node does not answer at its own address');
    return 0;
  }
}
