/** A column with values that `FLEET_SECRET_KEY` has sealed. */
export interface SealedColumn {
  table: string;
  /** The primary key; its columns are text. */
  key: readonly string[];
  column: string;
  /** What the values are sealed for: each purpose has a key of its own. */
  purpose: string;
}

/** Every column with sealed values: the rotation of the secret key seals them anew. A test compares them with the catalogue. */
export const SEALED = {
  signingKeys: { table: 'signing_keys', key: ['kid'], column: 'private_jwk_encrypted', purpose: 'signing-key' },
  pushSecrets: {
    table: 'push_configs',
    key: ['tenant_id', 'message_id', 'config_id'],
    column: 'secrets',
    purpose: 'push-notifications',
  },
  channelSecrets: {
    table: 'alert_channels',
    key: ['tenant_id', 'channel_id'],
    column: 'secrets',
    purpose: 'alert-channels',
  },
  agentCredentials: {
    table: 'agents',
    key: ['tenant_id', 'instance_id'],
    column: 'dispatch_auth',
    purpose: 'dispatch-auth',
  },
  deliveryBodies: { table: 'deliveries', key: ['tenant_id', 'delivery_id'], column: 'body', purpose: 'deliveries' },
  evaluatorSecrets: {
    table: 'policies',
    key: ['tenant_id', 'policy_id'],
    column: 'evaluator_secret',
    purpose: 'policy-evaluator',
  },
} as const satisfies Record<string, SealedColumn>;
