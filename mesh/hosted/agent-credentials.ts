import { unsealCredential } from '../../agents/dispatch-auth.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { type Secrets, UnreadableValue } from '../../runtime/secrets.js';
import { AccessTokens, type AccessTokensOptions, CredentialError } from './access-tokens.js';

/** The header that proves to an agent who is calling. */
export interface Proof {
  name: string;
  value: string;
  /** The OAuth access token in `value`, if it is one: when the agent refuses it, another can be fetched. */
  token?: string;
}

type OfAgent = Pick<OpenDispatch, 'tenant_id' | 'dispatch_auth'>;

export interface AgentCredentialsOptions extends AccessTokensOptions {
  secrets: Pick<Secrets, 'decrypt'>;
}

/** The proofs that agents require: the platform's own token, or the credential that the agent was registered with. */
export class AgentCredentials {
  readonly #secrets: Pick<Secrets, 'decrypt'>;
  readonly #tokens: AccessTokens;

  constructor({ secrets, ...options }: AgentCredentialsOptions) {
    this.#secrets = secrets;
    this.#tokens = new AccessTokens(options);
  }

  /**
   * The proof for an agent.
   * @param own signs the platform's own token
   * @param refused a proof that the agent has just refused
   * @throws CredentialError, or the error of signing
   */
  async proofFor(agent: OfAgent, own: () => string | Promise<string>, refused?: Proof): Promise<Proof> {
    if (agent.dispatch_auth === null) return { name: 'authorization', value: `Bearer ${await own()}` };
    const credential = this.#credentialOf(agent.dispatch_auth);
    if (credential.type === 'api_key') return { name: credential.name.toLowerCase(), value: credential.value };
    const token = await this.#tokens.get(agent.tenant_id, credential, refused?.token);
    return { name: 'authorization', value: `Bearer ${token}`, token };
  }

  #credentialOf(sealed: Buffer) {
    try {
      return unsealCredential(this.#secrets, sealed);
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error;
      const text = 'The credential of the agent cannot be read with the secret key in use: register the agent again.';
      throw new CredentialError('HANDLER_ERROR', text);
    }
  }
}
