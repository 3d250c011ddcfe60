#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { CommandInput } from './command.js';
import { COMMANDS } from './fleet-commands.js';
import { CliError, withStore } from './fleet-store.js';

const OK = 0;
const FAILED = 1;
const USAGE_ERROR = 2;

/** An invalid command line. */
class UsageError extends Error {}

function help(): string {
  const lines = Object.entries(COMMANDS).map(
    ([name, { usage = '', summary }]) => `  ${`${name} ${usage}`.trimEnd()}\n      ${summary}`,
  );
  return `Manages tenants, credentials and keys, and erases records in the platform's database.

Usage: npm run --silent fleet -- COMMAND [--json]

${lines.join('\n')}

  --json   print one JSON object and nothing else
  --help   print this

The database (of all but receipts verify) is DATABASE_URL, or that of the platform that runs with FLEET_DATA_DIR (.fleet). The secret key is
FLEET_SECRET_KEY, or secret.key in that directory.
`;
}

/** The command, with its argument and options. @throws UsageError, or an error of `parseArgs` */
function parseCommand(args: string[]) {
  const name = args.slice(0, 2).join(' ');
  const command = COMMANDS[name];
  if (!command) throw new UsageError(args.length === 0 ? 'A command is required.' : `There is no command "${name}".`);
  const strings = Object.fromEntries((command.options ?? []).map((option) => [option, { type: 'string' as const }]));
  const options = { ...strings, json: { type: 'boolean' as const } };
  const { positionals, values } = parseArgs({ args: args.slice(2), allowPositionals: true, options });
  const [argument = '', ...rest] = positionals;
  const hasArgument = command.argument ? argument !== '' : argument === '';
  if (!hasArgument || rest.length > 0) throw new UsageError(`Usage: ${name} ${command.usage ?? ''}`.trimEnd());
  const { json, ...given } = values as CommandInput['options'] & { json?: boolean };
  return { command, input: { argument, options: given }, json: json === true };
}

function cellText(value: unknown): string {
  if (value === null) return '-';
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function fieldsText(item: object, equals: string, separator: string): string {
  const fields = Object.entries(item).map(([name, value]) => `${name}${equals}${cellText(value)}`);
  return fields.join(separator);
}

/** Plain text: one line for each entry of a list, or for each field of anything else. */
function plain(result: Record<string, unknown>): string {
  const list = result.tenants ?? result.credentials ?? result.operators ?? result.keys ?? result.erasures;
  if (!Array.isArray(list)) return fieldsText(result, ': ', '\n');
  return list.map((item: object) => fieldsText(item, '=', '  ')).join('\n') || 'none';
}

function isUsageError(error: unknown): error is Error {
  return error instanceof UsageError || /^ERR_PARSE_ARGS/.test((error as { code?: string }).code ?? '');
}

async function main(args: string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(help());
    return OK;
  }
  try {
    const { command, input, json } = parseCommand(args);
    const result = await ('runAlone' in command
      ? command.runAlone(input)
      : withStore(process.env, (store) => command.run(store, input)));
    process.stdout.write(`${json ? JSON.stringify(result) : plain(result)}\n`);
    return OK;
  } catch (error) {
    if (isUsageError(error)) {
      process.stderr.write(`${error.message}\nTry --help.\n`);
      return USAGE_ERROR;
    }
    const expected = error instanceof CliError || error instanceof PlatformError;
    process.stderr.write(`${expected ? error.message : ((error as Error).stack ?? errorMessage(error))}\n`);
    return FAILED;
  }
}

process.exitCode = await main(process.argv.slice(2));
