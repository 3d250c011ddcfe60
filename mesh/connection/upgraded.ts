/** Who opened the socket, as the handshake found out. */
export interface Upgraded {
  tenant_id: string;
  instance_id: string;
  agent_type: string;
  credential_id: string;
  token: string;
  /** When the token ends, in seconds since 1970. */
  token_exp: number;
}
