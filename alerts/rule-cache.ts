import { LRUCache } from 'lru-cache';
import { LIMITS } from '../contracts/limits.js';
import type { Tx } from '../db/pool.js';
import {
  type Channel,
  type ChannelRow,
  maxAttemptsOf,
  readChannels,
  unsealChannel,
} from '../deliveries/channels/channel-store.js';
import { destinationOf } from '../deliveries/channels/send.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import type { Secrets } from '../runtime/secrets.js';
import { mayHaveToken, typesOf } from './matching.js';
import { type RuleRow, readRevisions, readRules } from './rule-store.js';

/** Rules of all tenants that are kept compiled. */
const RULES_KEPT = 20_000;

/** Where a rule delivers to. */
export interface CompiledChannel {
  channel_id: string;
  url: string;
  receiver: string;
  max_attempts: number;
}

/** A rule that is switched on, ready to be matched. */
export interface CompiledRule extends RuleRow {
  /** Those that are switched on. */
  channels: CompiledChannel[];
  has_token: boolean;
}

/** A tenant's rules by the types of event that they match. */
export type RulesByType = ReadonlyMap<string, CompiledRule[]>;

interface Compiled {
  revision: number;
  rules: RulesByType;
  size: number;
}

function byType(rules: CompiledRule[]): RulesByType {
  const found = new Map<string, CompiledRule[]>();
  for (const rule of rules) {
    for (const type of typesOf(rule)) found.set(type, [...(found.get(type) ?? []), rule]);
  }
  return found;
}

/** The compiled rules of tenants, each kept for as long as its revision stays. */
export class RuleCache {
  readonly #kept = new LRUCache<string, Compiled>({
    maxSize: RULES_KEPT,
    maxEntrySize: LIMITS.alertRulesPerTenant + 1,
    sizeCalculation: ({ size }) => size,
  });

  constructor(
    private readonly secrets: Pick<Secrets, 'decrypt'>,
    private readonly slackApiUrl: string,
    private readonly log: Pick<Logger, 'error'>,
  ) {}

  /** The rules of these tenants as the transaction sees them. Tenants without rules are missing. */
  async rulesOf(tx: Tx, tenantIds: string[]): Promise<Map<string, RulesByType>> {
    const revisions = await readRevisions(tx, tenantIds);
    const found = new Map<string, RulesByType>();
    for (const [tenantId, revision] of revisions) {
      const kept = this.#kept.get(tenantId);
      const compiled = kept?.revision === revision ? kept : await this.#compile(tx, tenantId, revision);
      this.#kept.set(tenantId, compiled);
      if (compiled.rules.size > 0) found.set(tenantId, compiled.rules);
    }
    return found;
  }

  async #compile(tx: Tx, tenantId: string, revision: number): Promise<Compiled> {
    const rules = (await readRules(tx, tenantId)).filter(({ enabled }) => enabled);
    const ids = rules.map(({ rule_id }) => rule_id);
    const rows = (await readChannels(tx, tenantId, ids)).filter(({ enabled }) => enabled);
    const channels = rows.flatMap((row) => this.#unsealed(tenantId, row));
    const compiled = rules.map((rule) => ({
      ...rule,
      has_token: mayHaveToken(rule),
      channels: channels
        .filter(({ rule_id }) => rule_id === rule.rule_id)
        .map((channel) => ({
          channel_id: channel.channel_id,
          max_attempts: maxAttemptsOf(channel),
          ...destinationOf(channel, this.slackApiUrl),
        })),
    }));
    return { revision, rules: byType(compiled), size: compiled.length + 1 };
  }

  /** A channel that cannot be read gets nothing: it must not keep the alerts of all tenants from going on. */
  #unsealed(tenant_id: string, row: ChannelRow): Channel[] {
    try {
      return [unsealChannel(this.secrets, row)];
    } catch (error) {
      const { rule_id, channel_id } = row;
      const ids = { tenant_id, rule_id, channel_id };
      this.log.error(
        { err: errorMessage(error), ...ids },
        'an alert channel cannot be decrypted: set its secrets anew',
      );
      return [];
    }
  }
}
