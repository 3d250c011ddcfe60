import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { type ErasureReport, findErasure, listErasures, requestErasure, type Selection } from '../erasure/erasures.js';
import { type Command, type CommandInput, ofTenant, parse, requiredOption } from './command.js';
import { CliError, type Store } from './fleet-store.js';

const POLL_MS = 200;
const DAY_MS = 86_400_000;
const WAIT_SECONDS = 60;
const Days = z.coerce.number().int().min(0).max(36_500);
const Seconds = z.coerce.number().int().min(0).max(86_400);
const Id = z.string().min(1).max(256);

const SELECTORS = ['message', 'session', 'user', 'older-than-days'] as const;
const CHOICE = '--session ID | --user USER_ID | --older-than-days N';

/** What the options select: exactly one of them. */
function selectionOf({ options }: CommandInput, allowed: readonly (typeof SELECTORS)[number][]): Selection {
  const given = allowed.filter((name) => options[name] !== undefined);
  const [name] = given;
  if (name === undefined || given.length > 1)
    throw new CliError(`Exactly one of ${allowed.map((option) => `--${option}`).join(', ')} is required.`);
  const value = options[name];
  if (name === 'message') return { message_id: parse(Id, value) };
  if (name === 'session') return { session_id: parse(Id, value) };
  if (name === 'user') return { user_id: parse(Id, value) };
  return { before: new Date(Date.now() - parse(Days, value) * DAY_MS).toISOString() };
}

/** Waits for the end of an erasure. @returns its report, as far as it is */
async function reportAfter({ db }: Store, id: string, input: CommandInput, seconds: number): Promise<ErasureReport> {
  const endsAt = performance.now() + parse(Seconds, input.options['wait-seconds'] ?? seconds) * 1_000;
  for (;;) {
    const report = await findErasure(db, id);
    if (report?.finished_at || performance.now() >= endsAt) {
      if (report) return report;
      throw new CliError(
        'The erasure is ordered and waits for a process with the worker role: "erasures list" shows it.',
      );
    }
    await delay(POLL_MS);
  }
}

function eraseCommand(kind: 'messages' | 'sessions', selectors: readonly (typeof SELECTORS)[number][]) {
  return async (store: Store, input: CommandInput) => {
    const tenant_id = requiredOption(input, 'tenant');
    const selection = selectionOf(input, selectors);
    const id = await ofTenant(store, tenant_id, (tx, { principal }) =>
      requestErasure(tx, { tenant_id, kind, selection }, principal.id),
    );
    return { ...(await reportAfter(store, id, input, WAIT_SECONDS)) };
  };
}

/** What `tenants delete` prints: with `--wait-seconds` the report of the erasure too. */
export async function erasureOfTenant(
  store: Store,
  tenantId: string,
  input: CommandInput,
): Promise<{ erasure?: ErasureReport }> {
  if (input.options['wait-seconds'] === undefined) return {};
  return { erasure: await reportAfter(store, tenantId, input, 0) };
}

/** The commands that erase, and their reports. */
export const ERASE_COMMANDS: Record<string, Command> = {
  'messages erase': {
    usage: `--tenant ID (--message ID | ${CHOICE}) [--wait-seconds 60]`,
    summary: 'erase messages and all that belongs to them; those at work are canceled first, except by age',
    options: ['tenant', ...SELECTORS, 'wait-seconds'],
    run: eraseCommand('messages', SELECTORS),
  },
  'sessions erase': {
    usage: `--tenant ID (${CHOICE}) [--wait-seconds 60]`,
    summary: 'erase sessions with their messages and events; active ones end first; by age: those that ended',
    options: ['tenant', 'session', 'user', 'older-than-days', 'wait-seconds'],
    run: eraseCommand('sessions', ['session', 'user', 'older-than-days']),
  },
  'erasures list': {
    usage: '[--tenant ID]',
    summary: 'list what was erased, and what is being erased',
    options: ['tenant'],
    run: async ({ db }, { options }) => ({ erasures: await listErasures(db, options.tenant ?? null) }),
  },
};
