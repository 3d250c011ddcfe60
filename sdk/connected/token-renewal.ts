import type { FrameEnvelope, WelcomePayload } from '../../contracts/frames.js';
import { settledWithin } from '../bounded-wait.js';
import type { AgentLog } from '../log.js';
import type { ConnectedToolCalls } from './connected-tool-calls.js';
import { frameId } from './frames.js';
import type { MeshConnection } from './mesh-connection.js';

/** Time limit for the answer to `reauth`. */
const REAUTH_MS = 10_000;
/** Tool calls end with their connection: a reconnect for a new token waits up to this long for running calls. */
const RECONNECT_WAIT_MS = 30_000;
/** Pause before another attempt to get a new token. */
const RETRY_MS = 5_000;
/** Node.js fires longer timers at once. A token that lives longer is renewed when the mesh closes the connection with `TOKEN_EXPIRED`. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface TokenRenewalOptions {
  connection: MeshConnection;
  welcome: WelcomePayload;
  tools: ConnectedToolCalls;
  log: AgentLog;
  /** The token that the connection was made with. */
  token: string;
  /** Time to renew the newest token, in milliseconds since the epoch. */
  renewAtMs(): number;
  /** Renews a token that is about to expire. @returns a valid token, or null when there is none; never rejects */
  renewToken(): Promise<string | null>;
}

/** Renews the token of a connection before it expires: by `reauth`, or with an older mesh by a reconnect. */
export class TokenRenewal {
  readonly #options: TokenRenewalOptions;
  /** The mesh's answer to the `reauth` frame that was sent last. */
  #pending: { id: string; settle: (accepted: boolean) => void } | null = null;
  #timer: NodeJS.Timeout | undefined;
  #token: string;
  #isOver = false;
  #isReconnecting = false;

  constructor(options: TokenRenewalOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#schedule();
  }

  /** The token that keeps the connection open. */
  get token(): string {
    return this.#token;
  }

  /** Whether the connection was cut for a new token, so that the next one follows at once. */
  get isReconnecting(): boolean {
    return this.#isReconnecting;
  }

  /** Takes the answer to `reauth`. @returns false when the frame is none */
  receive({ type, in_reply_to, payload }: FrameEnvelope): boolean {
    const pending = this.#pending;
    if (!pending || in_reply_to !== pending.id) return false;
    if (type === 'error') this.#options.log.info({ code: payload.code }, 'the mesh did not take the new token');
    pending.settle(type === 'reauth_ok');
    return true;
  }

  /** The connection is closed. */
  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#pending?.settle(false);
  }

  #schedule(): void {
    const inMs = Math.max(this.#options.renewAtMs() - Date.now(), 1_000);
    if (inMs <= TIMER_MS_MAX) this.#renewIn(inMs);
  }

  #renewIn(ms: number): void {
    this.#timer = setTimeout(() => void this.#renew(), ms);
  }

  /** Gets the new token before it cuts the connection: without a token the resume window could pass and in-flight work would be lost. */
  async #renew(): Promise<void> {
    const { welcome, log, renewToken } = this.#options;
    const token = await renewToken();
    if (this.#isOver) return;
    if (token === null) {
      this.#renewIn(RETRY_MS);
      return;
    }
    const isTaken = welcome.reauth === true && (await this.#reauth(token));
    if (this.#isOver) return;
    if (!isTaken) return this.#reconnect();
    this.#token = token;
    log.debug({}, 'the connection has a new token');
    this.#schedule();
  }

  /** @returns whether the mesh took the token */
  async #reauth(token: string): Promise<boolean> {
    const id = frameId();
    const answer = new Promise<boolean>((settle) => {
      this.#pending = { id, settle };
    });
    const timeout = setTimeout(() => this.#pending?.settle(false), REAUTH_MS);
    this.#options.connection.send('reauth', { token }, { id });
    const isAccepted = await answer;
    clearTimeout(timeout);
    this.#pending = null;
    return isAccepted;
  }

  async #reconnect(): Promise<void> {
    const { connection, tools, log } = this.#options;
    await settledWithin(tools.allSettled(), RECONNECT_WAIT_MS);
    if (this.#isOver) return;
    this.#isReconnecting = true;
    log.debug({}, 'reconnecting with a new token');
    connection.cut();
  }
}
