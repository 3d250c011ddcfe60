#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { visible } from '../contracts/visible-text.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import { ApiError, UnreachableError } from '../sdk/index.js';
import { connect } from './client/connection.js';
import { processTerminal } from './client/terminal.js';
import type { Command, CommandInput } from './command.js';
import { COMMANDS } from './fleet-commands.js';
import { CliError, withStore } from './fleet-store.js';

const OK = 0;
const FAILED = 1;
const USAGE_ERROR = 2;

/** Errors of which the message is enough. */
const EXPECTED = [CliError, PlatformError, ApiError, UnreachableError];

/** An invalid command line. */
class UsageError extends Error {}

function help(): string {
  const lines = Object.entries(COMMANDS).map(
    ([name, { usage = '', summary }]) => `  ${`${name} ${usage}`.trimEnd()}\n      ${summary}`,
  );
  return `Sends messages to agents, shows what becomes of them, and answers what they ask; manages tenants, credentials and keys in the
platform's database.

Usage: npm run --silent fleet -- COMMAND [--json]

${lines.join('\n')}

  --json   print JSON and nothing else: one object, or with tail one for each line
  --help   print this

Commands of one word call the API: at --url or FLEET_URL, with FLEET_CLIENT_ID and FLEET_CLIENT_SECRET, or FLEET_TOKEN, and FLEET_CA_FILE. Without
an address they use the platform that runs with FLEET_DATA_DIR (.fleet), and its credential.

The database of all others (but receipts verify) is DATABASE_URL, or that of the platform that runs with FLEET_DATA_DIR (.fleet). The secret key is
FLEET_SECRET_KEY, or secret.key in that directory.
`;
}

/** The command, with its argument and options. @throws UsageError, or an error of `parseArgs` */
function parseCommand(args: string[]) {
  const twoWords = args.slice(0, 2).join(' ');
  const name = [twoWords, args[0] ?? ''].find((words) => Object.hasOwn(COMMANDS, words)) ?? '';
  const command = COMMANDS[name];
  if (!command)
    throw new UsageError(args.length === 0 ? 'A command is required.' : `There is no command "${twoWords}".`);
  const names = [...(command.options ?? []), ...('runClient' in command ? ['url'] : [])];
  const strings = Object.fromEntries(names.map((option) => [option, { type: 'string' as const }]));
  const options = { ...strings, json: { type: 'boolean' as const } };
  const rest = args.slice(name.split(' ').length);
  const { positionals, values } = parseArgs({ args: rest, allowPositionals: true, options });
  const [least, most] = command.arguments ?? [0, 0];
  const [argument = '', second = ''] = positionals;
  if (positionals.length < least || positionals.length > most || positionals.includes(''))
    throw new UsageError(`Usage: ${name} ${command.usage ?? ''}`.trimEnd());
  const { json, ...given } = values as CommandInput['options'] & { json?: boolean };
  return { command, input: { argument, second, options: given }, json: json === true };
}

/** Runs a command that calls the API. @returns the exit code */
async function runWithClient(
  run: Extract<Command, { runClient: unknown }>['runClient'],
  input: CommandInput,
  json: boolean,
): Promise<number> {
  const client = connect(input.options.url);
  const terminal = processTerminal();
  try {
    const shown = await run({ client, terminal, json }, input);
    const text = json && shown.json !== undefined ? JSON.stringify(shown.json) : json ? '' : shown.text;
    if (text !== '') terminal.write(`${text}\n`);
    if (shown.note && !json) terminal.note(`${shown.note}\n`);
    return shown.exitCode ?? OK;
  } finally {
    client.destroy();
  }
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
    if ('runClient' in command) return await runWithClient(command.runClient, input, json);
    const result = await ('runAlone' in command
      ? command.runAlone(input)
      : withStore(process.env, (store) => command.run(store, input)));
    process.stdout.write(`${json ? JSON.stringify(result) : visible(plain(result))}\n`);
    return OK;
  } catch (error) {
    if (isUsageError(error)) {
      process.stderr.write(`${error.message}\nTry --help.\n`);
      return USAGE_ERROR;
    }
    const expected = error instanceof Error && EXPECTED.some((kind) => error instanceof kind);
    const text = expected ? error.message : ((error as Error).stack ?? errorMessage(error));
    process.stderr.write(`${visible(text)}\n`);
    return FAILED;
  }
}

process.exitCode = await main(process.argv.slice(2));
