import { type A2aVersion, PUSH_LIMITS, type PushNotificationConfig } from '../../contracts/a2a/a2a.js';
import { actsAs, isOwnMessage, isSentBy, type MessageOwners, type Reader } from '../../contracts/permissions.js';
import { ownersOf } from '../../db/ownership.js';
import type { Db, Tx } from '../../db/pool.js';
import { type Outbound, OutboundError } from '../../http/outbound.js';
import type { AcceptHook } from '../../messages/accept/accept-transaction.js';
import type { MessageRef } from '../../messages/core.js';
import { PlatformError } from '../../runtime/errors.js';
import type { Secrets } from '../../runtime/secrets.js';
import { receiverOf } from '../attempts.js';
import { dropPending, movePending } from '../pending-deliveries.js';
import {
  addFirstChange,
  lockForPush,
  type PushConfigRow,
  pushConfigsOf,
  putPushConfig,
  removePushConfig,
  sealPushSecrets,
} from './push-config-store.js';

/** A config as the API shows it: always with `id`, never with `token` or `credentials`. */
export type ShownPushConfig = Omit<PushNotificationConfig, 'token'> & { id: string };

/** A page of the configs of a task. */
export interface PushConfigPage {
  /** 1 to 100; all configs when absent. */
  pageSize?: number;
  /** `nextPageToken` of the previous page. */
  pageToken?: string;
}

/** The id by which clients of A2A 0.3 request the config that they gave no id. */
const DEFAULT_ID = 'default';

function publicConfig(row: PushConfigRow): ShownPushConfig {
  const authentication = row.schemes.length > 0 && { authentication: { schemes: row.schemes } };
  return { id: row.config_id, url: row.url, ...authentication };
}

function noTask(): PlatformError {
  return new PlatformError('PUSH_CONFIG_NOT_FOUND', 'Task not found: there is none of that id.');
}

function checkedUrl(outbound: Pick<Outbound, 'checkUrl'>, url: string): string {
  try {
    outbound.checkUrl(url);
    return url;
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const problem = error.code === 'FORBIDDEN_ADDRESS' ? 'must not name a private address' : 'must be an http(s) URL';
    throw new PlatformError('INVALID_PARAMS', `pushNotificationConfig.url: ${problem}`);
  }
}

function pageOf(configs: ShownPushConfig[], { pageSize, pageToken }: PushConfigPage) {
  const before = pageToken ? configs.findIndex(({ id }) => id === pageToken) : -1;
  if (pageToken && before < 0) throw new PlatformError('INVALID_PARAMS', 'pageToken: is not of this list');
  const rest = configs.slice(before + 1);
  const page = rest.slice(0, pageSize || rest.length);
  return { configs: page, nextPageToken: page.length < rest.length ? (page.at(-1)?.id ?? '') : '' };
}

/**
 * The push notifications of a task belong to its sender.
 * @throws PlatformError PUSH_CONFIG_NOT_FOUND if the caller does not see the task; forbidden if it only serves it
 */
function requireSender(caller: Reader, owners: MessageOwners | null): void {
  if (!owners || !isOwnMessage(caller, owners)) throw noTask();
  if (!isSentBy(caller, owners))
    throw new PlatformError('forbidden', 'The push notifications of a task belong to who sent it.');
}

/**
 * `tasks/pushNotificationConfig/{set,get,list,delete}` and their 1.0 counterparts, on Postgres with encrypted secrets. All throw PlatformError
 * PUSH_CONFIG_NOT_FOUND when the caller has no such task, and forbidden for an agent that serves the task but did not send it.
 */
export function createPushConfigs(deps: {
  db: Db;
  secrets: Pick<Secrets, 'encrypt' | 'activate'>;
  outbound: Pick<Outbound, 'checkUrl'>;
  /** Called for each new config, because a delivery may be due soon. */
  expect: () => void;
}) {
  const { db, secrets, outbound, expect } = deps;
  const read = async (caller: Reader, taskId: string): Promise<PushConfigRow[]> => {
    const { tenant_id } = caller;
    const rows = await db.tenant(tenant_id, async (tx) => {
      if (actsAs(caller) !== null) requireSender(caller, await ownersOf(tx, tenant_id, taskId));
      return pushConfigsOf(tx, { tenant_id, message_id: taskId });
    });
    if (!rows) throw noTask();
    return rows;
  };
  /** Runs `work` on a task of the caller whose configs nobody else changes meanwhile. */
  const change = (caller: Reader, taskId: string, work: (tx: Tx, of: MessageRef) => Promise<void>): Promise<void> => {
    const of = { tenant_id: caller.tenant_id, message_id: taskId };
    return db.tenant(of.tenant_id, async (tx) => {
      requireSender(caller, await lockForPush(tx, of));
      await work(tx, of);
    });
  };
  /** Checks a config, whose secrets are then encrypted in the transaction that stores it. Without an id it gets the task's id. */
  const prepare = (config: PushNotificationConfig, version: A2aVersion) => {
    const url = checkedUrl(outbound, config.url);
    const { id, token, authentication: { schemes = [], credentials } = {} } = config;
    expect();
    return async (tx: Tx, taskId: string): Promise<PushConfigRow> => {
      const sealed = await sealPushSecrets(tx, secrets, { token, credentials });
      return { config_id: id || taskId, url, schemes, secrets: sealed, protocol_version: version };
    };
  };
  return {
    /**
     * Checks a config that comes with a message. The returned hook stores the config in the accept transaction.
     * @throws PlatformError INVALID_PARAMS for a URL that is not http(s), contains credentials or names a forbidden address
     */
    prepare: (config: PushNotificationConfig, version: A2aVersion): AcceptHook => {
      const rowOf = prepare(config, version);
      return async (tx, message, state) => {
        const row = await rowOf(tx, message.message_id);
        await putPushConfig(tx, message, row);
        if (state !== 'submitted') await addFirstChange(tx, message, row.config_id, state);
      };
    },
    /**
     * Sets a config: it is notified of each later change of the task's state. It replaces a config of the same id; without an id it gets the
     * task's id, so that a repeat adds no second one. A task that has ended accepts a config too, but sends it nothing.
     * @param version the version of A2A for the notifications
     * @returns the given config with its id
     * @throws PlatformError INVALID_PARAMS as `prepare`, and beyond 16 configs of one task
     */
    set: async (
      caller: Reader,
      taskId: string,
      config: PushNotificationConfig,
      version: A2aVersion,
    ): Promise<PushNotificationConfig & { id: string }> => {
      const rowOf = prepare(config, version);
      const configId = config.id || taskId;
      await change(caller, taskId, async (tx, of) => {
        const others = (await pushConfigsOf(tx, of))?.filter(({ config_id }) => config_id !== configId) ?? [];
        if (others.length >= PUSH_LIMITS.configsPerTask)
          throw new PlatformError('INVALID_PARAMS', `A task has at most ${PUSH_LIMITS.configsPerTask} configurations.`);
        await putPushConfig(tx, of, await rowOf(tx, taskId));
        const to = { url: config.url, receiver: receiverOf(config.url) };
        await movePending(tx, of.tenant_id, { message_id: of.message_id, config_id: configId }, to);
      });
      return { ...config, id: configId };
    },
    /** Reads a config. Without an id, or for a `default` that does not exist, the one with the task's id, else the oldest. @throws PlatformError PUSH_CONFIG_NOT_FOUND when there is none */
    get: async (caller: Reader, taskId: string, id?: string): Promise<ShownPushConfig> => {
      const rows = await read(caller, taskId);
      const named = (name: string) => rows.find(({ config_id }) => config_id === name);
      const found = id && id !== DEFAULT_ID ? named(id) : (named(id || taskId) ?? named(taskId) ?? rows[0]);
      if (!found)
        throw new PlatformError('PUSH_CONFIG_NOT_FOUND', 'The task has no such push notification configuration.');
      return publicConfig(found);
    },
    /** Lists configs, the oldest first. `nextPageToken` is empty on the last page. @throws PlatformError INVALID_PARAMS for an unknown page token */
    list: async (caller: Reader, taskId: string, page: PushConfigPage = {}) =>
      pageOf((await read(caller, taskId)).map(publicConfig), page),
    /** Removes a config and drops its unfinished deliveries. Succeeds for a config that does not exist. */
    delete: (caller: Reader, taskId: string, id: string): Promise<void> =>
      change(caller, taskId, async (tx, of) => {
        await removePushConfig(tx, of, id);
        await dropPending(tx, of.tenant_id, { message_id: of.message_id, config_id: id });
      }),
  };
}

/** The push-notification configs of tasks. */
export type PushConfigs = ReturnType<typeof createPushConfigs>;
