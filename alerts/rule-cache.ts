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
import { channelTo, destinationDigest, destinationOf, mailsOf } from '../deliveries/channels/send.js';
import { errorMessage } from '../runtime/errors.js';
import type { Logger } from '../runtime/logger.js';
import type { Secrets } from '../runtime/secrets.js';
import { mayHaveToken, typesOf } from './matching.js';
import { type RuleRow, readRevisions, readRules, readSizes } from './rule-store.js';

/** Rules of all tenants that are kept compiled. */
const RULES_KEPT = 20_000;
/** Channels, and rules, that a batch of all tenants compiles, and those of one tenant: a tenant with more, whose rules have changed, is read by itself. */
export const COMPILED_IN_SHARED = { all: 1_000, ofTenant: 200 };
const ANY_NUMBER = { all: Number.POSITIVE_INFINITY, ofTenant: Number.POSITIVE_INFINITY };

/** Where a rule delivers to: a channel, of email each of its recipients. */
export interface CompiledChannel {
  channel_id: string;
  /** The recipient of an email; else ''. */
  mail_to: string;
  /** The digest by which its callback tokens know it. */
  destination: string;
  url: string;
  receiver: string;
  max_attempts: number;
}

/** A rule that is switched on, ready to be matched. */
export interface CompiledRule extends RuleRow {
  /** Of the channels that are switched on. */
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

/** The rules of tenants. */
export type RulesOf = ReadonlyMap<string, RulesByType>;

/** Those of the tenants for whose rules and channels there is no room. */
async function withoutRoom(tx: Tx, tenantIds: string[], room: typeof ANY_NUMBER): Promise<Set<string>> {
  const sizes = tenantIds.length > 0 ? await readSizes(tx, tenantIds) : new Map<string, number>();
  let total = 0;
  const uncompiled = tenantIds.filter((tenantId) => {
    const size = sizes.get(tenantId) ?? 0;
    if (size > room.ofTenant || total + size > room.all) return true;
    total += size;
    return false;
  });
  return new Set(uncompiled);
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

  /**
   * The rules of these tenants as the transaction sees them. Tenants without rules are missing.
   * @param room channels and rules that may be compiled; without end by default
   * @returns also the tenants whose rules are not compiled, because there was no room
   */
  async rulesOf(tx: Tx, tenantIds: string[], room = ANY_NUMBER): Promise<{ rules: RulesOf; uncompiled: Set<string> }> {
    const revisions = await readRevisions(tx, tenantIds);
    const kept = [...revisions].flatMap(([tenantId, revision]): [string, Compiled][] => {
      const compiled = this.#kept.get(tenantId);
      return compiled?.revision === revision ? [[tenantId, compiled]] : [];
    });
    const found = new Map(kept);
    const changed = [...revisions].filter(([tenantId]) => !found.has(tenantId));
    const ids = changed.map(([tenantId]) => tenantId);
    const uncompiled = room === ANY_NUMBER ? new Set<string>() : await withoutRoom(tx, ids, room);
    for (const [tenantId, revision] of changed) {
      if (uncompiled.has(tenantId)) continue;
      const compiled = await this.#compile(tx, tenantId, revision);
      this.#kept.set(tenantId, compiled);
      found.set(tenantId, compiled);
    }
    const rules = [...found].map(([tenantId, compiled]) => [tenantId, compiled.rules] as const);
    return { rules: new Map(rules.filter(([, byType]) => byType.size > 0)), uncompiled };
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
        .flatMap((channel) => mailsOf(channel).map((mailTo) => this.#compiled(channel, mailTo))),
    }));
    return { revision, rules: byType(compiled), size: compiled.length + 1 };
  }

  #compiled(whole: Channel, mail_to: string): CompiledChannel {
    const channel = channelTo(whole, mail_to);
    return {
      ...{ channel_id: channel.channel_id, mail_to, max_attempts: maxAttemptsOf(channel) },
      destination: destinationDigest(channel, this.slackApiUrl),
      ...destinationOf(channel, this.slackApiUrl),
    };
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
