import { type Author, recordAudit } from '../audit/record-audit.js';
import type { AlertRule, NewAlertRequest, NotificationInput, UpdateAlertRequest } from '../contracts/api/alerts.js';
import { LIMITS } from '../contracts/limits.js';
import { type Page, type PageRequest, readPage } from '../db/pages/page.js';
import type { Db, Tx } from '../db/pool.js';
import { readUnavailable } from '../deliveries/breakers.js';
import { type Channel, readableChannel, readChannels, writeChannels } from '../deliveries/channels/channel-store.js';
import { destinationOf } from '../deliveries/channels/send.js';
import { dropPending } from '../deliveries/pending-deliveries.js';
import type { Outbound } from '../http/outbound.js';
import { PlatformError } from '../runtime/errors.js';
import { newId } from '../runtime/ids.js';
import type { Secrets } from '../runtime/secrets.js';
import { channelsFrom, shownChannel } from './channel-input.js';
import {
  beginRuleChange,
  countRules,
  deleteRule,
  type RuleRow,
  readRule,
  readRulesOf,
  ruleList,
  saveRule,
} from './rule-store.js';

/** A rule with its channels and their secrets. */
export interface StoredRule {
  row: RuleRow;
  channels: Channel[];
}

/** The dependencies of the alert rules. */
export interface AlertRuleDeps {
  db: Db;
  secrets: Pick<Secrets, 'encrypt' | 'decrypt' | 'activate'>;
  outbound: Pick<Outbound, 'checkUrl'>;
  slackApiUrl: string;
}

export type AlertRules = ReturnType<typeof createAlertRules>;

function noRule(): PlatformError {
  return new PlatformError('NOT_FOUND', 'There is no alert rule of that rule_id.');
}

function targetOf({ rule_id: id, name }: AlertRule) {
  return { type: 'alert_rule', id, name };
}

function shownRule({ row, channels }: StoredRule): AlertRule {
  const { event, filters, created_at, updated_at, ...rule } = row;
  const hasFilters = Object.keys(filters).length > 0;
  return {
    ...rule,
    condition: { event, ...(hasFilters && { filters }) },
    notifications: channels.map(shownChannel),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}

/**
 * The writers of a rule after a change of what it sends to whom: those that may have its tokens, or know its secrets.
 * @throws PlatformError CONFLICT beyond 100 of them
 */
function writersAfter({ writers }: RuleRow, writer: string, request: UpdateAlertRequest): string[] {
  const { condition, notifications, approvers } = request;
  if (writers.includes(writer) || [condition, notifications, approvers].every((one) => one === undefined))
    return writers;
  if (writers.length < LIMITS.ruleWriters) return [...writers, writer];
  throw new PlatformError(
    'CONFLICT',
    `At most ${LIMITS.ruleWriters} credentials change what a rule sends. Create it anew.`,
  );
}

/** Only the given fields change. */
function changedRow(row: RuleRow, writer: string, request: UpdateAlertRequest): RuleRow {
  const { condition, notifications: _, ...given } = request;
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const writers = writersAfter(row, writer, request);
  return { ...row, ...fields, writers, ...(condition && { event: condition.event, filters: condition.filters ?? {} }) };
}

/** Alert rules with their channels, on Postgres with encrypted secrets. All throw PlatformError NOT_FOUND when the tenant has no such rule. */
export function createAlertRules({ db, secrets, outbound, slackApiUrl }: AlertRuleDeps) {
  const channelsOf = async (tx: Tx, tenantId: string, rules: Pick<RuleRow, 'rule_id'>[]): Promise<Channel[]> => {
    const ids = rules.map(({ rule_id }) => rule_id);
    return (await readChannels(tx, tenantId, ids)).map((row) => readableChannel(secrets, row));
  };
  const read = async (tx: Tx, tenantId: string, ruleId: string): Promise<StoredRule> => {
    const row = await readRule(tx, tenantId, ruleId);
    if (!row) throw noRule();
    return { row, channels: await channelsOf(tx, tenantId, [row]) };
  };
  /** Rules as they are read: with the receivers that do not answer. */
  const shown = async (tx: Tx, tenantId: string, stored: StoredRule[]): Promise<AlertRule[]> => {
    const addressOf = (channel: Channel) => (channel.unreadable ? '' : destinationOf(channel, slackApiUrl).receiver);
    const receivers = new Set(stored.flatMap(({ channels }) => channels.map(addressOf)));
    const unavailable = await readUnavailable(tx, tenantId, [...receivers]);
    const receiverOf = (channel: Channel) => {
      const receiver = unavailable.get(addressOf(channel));
      return receiver && { receiver };
    };
    return stored.map((rule) => {
      const notifications = rule.channels.map((channel) => ({ ...shownChannel(channel), ...receiverOf(channel) }));
      return { ...shownRule(rule), notifications };
    });
  };
  const save = async (
    tx: Tx,
    author: Author,
    row: Omit<RuleRow, 'created_at' | 'updated_at' | 'updated_by'>,
    inputs: NotificationInput[] | undefined,
    stored: Channel[],
  ) => {
    const saved = await saveRule(tx, row, author);
    if (inputs === undefined) return shownRule({ row: saved, channels: stored });
    const channels = channelsFrom(outbound, inputs, stored, Date.now());
    await writeChannels(tx, secrets, saved, channels);
    const { rule_id } = saved;
    return shownRule({ row: saved, channels: channels.map((channel) => ({ ...channel, rule_id })) });
  };
  return {
    /**
     * Creates a rule. It sees the events that follow.
     * @throws PlatformError BAD_REQUEST for a channel that cannot be used, CONFLICT beyond 500 rules
     */
    create: (author: Author, request: NewAlertRequest): Promise<AlertRule> => {
      const { tenant_id: tenantId, principal } = author;
      return db.tenant(tenantId, async (tx) => {
        await beginRuleChange(tx, tenantId);
        if ((await countRules(tx, tenantId)) >= LIMITS.alertRulesPerTenant)
          throw new PlatformError('CONFLICT', `A tenant has at most ${LIMITS.alertRulesPerTenant} alert rules.`);
        const { condition, notifications, ...fields } = request;
        const { event, filters = {} } = condition;
        const ids = { tenant_id: tenantId, rule_id: newId('rule') };
        const row = { ...ids, ...fields, event, filters, writers: [principal.id] };
        const after = await save(tx, author, row, notifications, []);
        await recordAudit(tx, author, { action: 'alert_rule.create', target: targetOf(after), after });
        return after;
      });
    },
    /** A page of rules, newest first. */
    list: (tenantId: string, page: PageRequest): Promise<Page<AlertRule>> =>
      readPage(db, ruleList(tenantId), page, async (tx, ruleIds) => {
        const rules = await readRulesOf(tx, tenantId, ruleIds);
        const channels = await channelsOf(tx, tenantId, rules);
        const ofRule = (row: RuleRow) => channels.filter(({ rule_id }) => rule_id === row.rule_id);
        return shown(
          tx,
          tenantId,
          rules.map((row) => ({ row, channels: ofRule(row) })),
        );
      }),
    get: (tenantId: string, ruleId: string): Promise<AlertRule> =>
      db.tenant(tenantId, async (tx) => {
        const [rule] = await shown(tx, tenantId, [await read(tx, tenantId, ruleId)]);
        return rule as AlertRule;
      }),
    /** A rule with the secrets of its channels, for a test notification. */
    getStored: (tenantId: string, ruleId: string): Promise<StoredRule> =>
      db.tenant(tenantId, (tx) => read(tx, tenantId, ruleId)),
    /** Changes a rule. `notifications` replaces all channels (channel-input.ts says which secrets stay). @throws PlatformError as `create` */
    update: (author: Author, request: UpdateAlertRequest): Promise<AlertRule> => {
      const { tenant_id: tenantId, principal } = author;
      return db.tenant(tenantId, async (tx) => {
        await beginRuleChange(tx, tenantId);
        const stored = await read(tx, tenantId, request.rule_id);
        const before = shownRule(stored);
        const row = changedRow(stored.row, principal.id, request);
        const after = await save(tx, author, row, request.notifications, stored.channels);
        await recordAudit(tx, author, { action: 'alert_rule.update', target: targetOf(after), before, after });
        return after;
      });
    },
    /** Deletes a rule, and drops its deliveries that are not over. */
    delete: (author: Author, ruleId: string): Promise<void> =>
      db.tenant(author.tenant_id, async (tx) => {
        const { tenant_id: tenantId } = author;
        await beginRuleChange(tx, tenantId);
        const before = shownRule(await read(tx, tenantId, ruleId));
        await deleteRule(tx, tenantId, ruleId);
        await dropPending(tx, tenantId, { rule_id: ruleId });
        await recordAudit(tx, author, { action: 'alert_rule.delete', target: targetOf(before), before });
      }),
  };
}
