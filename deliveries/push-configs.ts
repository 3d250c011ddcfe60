import type { A2aVersion } from '../contracts/a2a.js';
import { actsAs, type Reader } from '../contracts/permissions.js';
import { PUSH_LIMITS, type PushNotificationConfig } from '../contracts/push.js';
import { ownersOf } from '../db/own.js';
import type { Db } from '../db/pool.js';
import { type Outbound, OutboundError } from '../http/outbound.js';
import type { AcceptHook } from '../messages/accept/accept-transaction.js';
import { requireSender } from '../messages/read/own.js';
import { PlatformError } from '../runtime/errors.js';
import type { Secrets } from '../runtime/secrets.js';
import {
  lockForPush,
  noteFirstState,
  type PushConfigRow,
  pushConfigsOf,
  putPushConfig,
  removePushConfig,
} from './push.js';
import { dropDeliveries } from './push-deliveries.js';
import { sealPushSecrets } from './push-secrets.js';

/** A config that was checked, its secrets sealed. Its id is null where the caller gave none. */
type PreparedPush = Omit<PushConfigRow, 'config_id'> & { config_id: string | null };

/** A config as it is shown: `id` is always there, `token` and `credentials` never are. */
export type ShownPushConfig = Omit<PushNotificationConfig, 'token'> & { id: string };

/** Which configs of a task, at most 16 in all. */
export interface PushConfigPage {
  /** 1 to 100; all when absent. */
  pageSize?: number;
  /** `nextPageToken` of the page before. */
  pageToken?: string;
}

/**
 * `tasks/pushNotificationConfig/{set,get,list,delete}` and their 1.0 names. All: @throws PlatformError PUSH_CONFIG_NOT_FOUND when there is
 * no such task for the caller; forbidden for an agent that serves the task and did not send it.
 */
export interface PushConfigs {
  /**
   * Checks a config that comes with a message; what it gives writes the config when the message is accepted.
   * @throws PlatformError INVALID_PARAMS for a URL that is not http(s), has credentials in it or names a forbidden address
   */
  prepare(config: PushNotificationConfig, version: A2aVersion): AcceptHook;
  /**
   * Sets a config: from the task's next change of state on it is told of each. One of the same id is replaced; without an id it has the
   * task's, so that a repeat adds none. A task that has ended takes it too, and nothing comes of it.
   * @param version of A2A in which it is told
   * @returns the config as it was given, with its id
   * @throws PlatformError INVALID_PARAMS as `prepare`, and beyond 16 configs of one task
   */
  set(
    caller: Reader,
    taskId: string,
    config: PushNotificationConfig,
    version: A2aVersion,
  ): Promise<PushNotificationConfig & { id: string }>;
  /** One config: the task's own or the oldest where no id is given, or `default` and none is called so. @throws PlatformError PUSH_CONFIG_NOT_FOUND when there is none */
  get(caller: Reader, taskId: string, id?: string): Promise<ShownPushConfig>;
  /** The oldest first. `nextPageToken` is empty at the end. @throws PlatformError INVALID_PARAMS for an unknown page token */
  list(
    caller: Reader,
    taskId: string,
    page?: PushConfigPage,
  ): Promise<{ configs: ShownPushConfig[]; nextPageToken: string }>;
  /** Removes a config and what was still to be told to it. One that is not there is removed already. */
  delete(caller: Reader, taskId: string, id: string): Promise<void>;
}

/** By which clients of 0.3 ask for the config that they gave no id. */
const DEFAULT_ID = 'default';

/** The id of a config that was given none. */
function pushConfigId(id: string | null | undefined, taskId: string): string {
  return id || taskId;
}

function shown(row: PushConfigRow): ShownPushConfig {
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
    const why = error.code === 'FORBIDDEN_ADDRESS' ? 'must not name a private address' : 'must be an http(s) URL';
    throw new PlatformError('INVALID_PARAMS', `pushNotificationConfig.url: ${why}`);
  }
}

function pageOf(configs: ShownPushConfig[], { pageSize, pageToken }: PushConfigPage) {
  const before = pageToken ? configs.findIndex(({ id }) => id === pageToken) : -1;
  if (pageToken && before < 0) throw new PlatformError('INVALID_PARAMS', 'pageToken: is not of this list');
  const rest = configs.slice(before + 1);
  const page = rest.slice(0, pageSize || rest.length);
  return { configs: page, nextPageToken: page.length < rest.length ? (page.at(-1)?.id ?? '') : '' };
}

/** Push-notification configs on Postgres, their secrets encrypted. */
export function createPushConfigs(means: {
  db: Db;
  secrets: Pick<Secrets, 'encrypt'>;
  outbound: Pick<Outbound, 'checkUrl'>;
  /** Called when a config comes up: something may be to tell soon. */
  expect: () => void;
}): PushConfigs {
  const { db, secrets, outbound, expect } = means;
  const read = async (caller: Reader, taskId: string): Promise<PushConfigRow[]> => {
    const { tenant_id } = caller;
    const rows = await db.tenant(tenant_id, async (tx) => {
      if (actsAs(caller) !== null) requireSender(caller, await ownersOf(tx, tenant_id, taskId));
      return pushConfigsOf(tx, { tenant_id, message_id: taskId });
    });
    if (!rows) throw noTask();
    return rows;
  };
  const prepare = (config: PushNotificationConfig, version: A2aVersion): PreparedPush => {
    const url = checkedUrl(outbound, config.url);
    const { token, authentication: { schemes = [], credentials } = {} } = config;
    expect();
    const sealed = sealPushSecrets(secrets, { token, credentials });
    return { config_id: config.id || null, url, schemes, secrets: sealed, protocol_version: version };
  };
  return {
    prepare: (config, version) => {
      const prepared = prepare(config, version);
      return async (tx, message, state) => {
        const config_id = pushConfigId(prepared.config_id, message.message_id);
        await putPushConfig(tx, message, { ...prepared, config_id });
        if (state !== 'submitted') await noteFirstState(tx, message, config_id, state);
      };
    },
    set: async (caller, taskId, config, version) => {
      const { tenant_id } = caller;
      const prepared = prepare(config, version);
      const id = pushConfigId(prepared.config_id, taskId);
      const of = { tenant_id, message_id: taskId };
      await db.tenant(tenant_id, async (tx) => {
        requireSender(caller, await lockForPush(tx, of));
        const others = (await pushConfigsOf(tx, of))?.filter(({ config_id }) => config_id !== id) ?? [];
        if (others.length >= PUSH_LIMITS.configsPerTask)
          throw new PlatformError('INVALID_PARAMS', `A task has at most ${PUSH_LIMITS.configsPerTask} configurations.`);
        await putPushConfig(tx, of, { ...prepared, config_id: id });
      });
      return { ...config, id };
    },
    get: async (caller, taskId, id) => {
      const rows = await read(caller, taskId);
      const named = (name: string) => rows.find(({ config_id }) => config_id === name);
      const found = id && id !== DEFAULT_ID ? named(id) : (named(id || taskId) ?? named(taskId) ?? rows[0]);
      if (!found)
        throw new PlatformError('PUSH_CONFIG_NOT_FOUND', 'The task has no such push notification configuration.');
      return shown(found);
    },
    list: async (caller, taskId, page = {}) => pageOf((await read(caller, taskId)).map(shown), page),
    delete: async (caller, taskId, id) => {
      const { tenant_id } = caller;
      const of = { tenant_id, message_id: taskId };
      await db.tenant(tenant_id, async (tx) => {
        requireSender(caller, await lockForPush(tx, of));
        await removePushConfig(tx, of, id);
        await dropDeliveries(tx, { ...of, config_id: id });
      });
    },
  };
}
