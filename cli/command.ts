import { userInfo } from 'node:os';
import type { z } from 'zod';
import type { Author } from '../audit/record-audit.js';
import { type Actor, requireTenant } from '../auth/tenants.js';
import type { Tx } from '../db/pool.js';
import type { Session } from './client/connection.js';
import { CliError, type Store } from './fleet-store.js';

/** The parsed arguments of a command. */
export interface CommandInput {
  /** The positional arguments; '' without one. */
  argument: string;
  second: string;
  options: Record<string, string | undefined>;
}

/** What all commands of `fleet` have. */
interface CommandForm {
  /** Shown in the help after the name. */
  usage?: string;
  summary: string;
  /** How many arguments it takes at least and at most; none by default. */
  arguments?: readonly [least: number, most: 1 | 2];
  /** Names of its options, all of which take a value. */
  options?: readonly string[];
}

/** What a command that calls the API gives. */
export interface Shown {
  /** For `--json`; absent where it has written its lines. */
  json?: unknown;
  /** For people. */
  text: string;
  /** Beside the result, on standard error. */
  note?: string;
  /** 0 by default. */
  exitCode?: number;
}

/** A command of `fleet`: with the platform's database, with a client of its API, or without anything but its input. */
export type Command = CommandForm &
  (
    | { runClient: (session: Session, input: CommandInput) => Promise<Shown> }
    | { run: (store: Store, input: CommandInput) => Promise<Record<string, unknown>> }
    | { runAlone: (input: CommandInput) => Promise<Record<string, unknown>> }
  );

/** @throws CliError where the option is missing */
export function requiredOption(input: CommandInput, option: string): string {
  const value = input.options[option];
  if (value === undefined) throw new CliError(`--${option} is required.`);
  return value;
}

/** @throws CliError that names what does not fit */
export function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CliError(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is invalid'}`.replace(/^: /, ''));
}

function login(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`; // a container may run it as a user that has no name
  }
}

/** Who runs the command, for the audit and for reports. */
export function operator(): Actor {
  return { principal: { type: 'operator', id: `cli:${login()}` } };
}

/** A transaction about a tenant. @throws PlatformError `NOT_FOUND` for an unknown or deleted tenant */
export function ofTenant<T>(
  { db }: Store,
  tenant_id: string,
  work: (tx: Tx, author: Author) => Promise<T>,
): Promise<T> {
  return db.system(async (tx) => {
    await requireTenant(tx, tenant_id);
    return work(tx, { ...operator(), tenant_id });
  });
}
