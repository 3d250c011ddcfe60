import { unsealCredential } from '../../agents/dispatch-auth.js';
import type { OpenDispatch } from '../../messages/dispatch/dispatches.js';
import { type Secrets, UnreadableValue } from '../../runtime/secrets.js';
import { AccessTokens, type AccessTokensOptions, CredentialError } from './access-tokens.js';

/** The header by which an agent knows who asks. */
export interface Proof {
  name: string;
  value: string;
  /** An access token of OAuth, which may have been withdrawn: another one can be had. */
  token?: string;
}

type OfAgent = Pick<OpenDispatch, 'tenant_id' | 'dispatch_auth'>;

export interface AgentCredentialsOptions extends AccessTokensOptions {
  secrets: Pick<Secrets, 'decrypt'>;
}

/** What agents want to see before they answer: the platform's own token, or the credential that they were registered with. */
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
