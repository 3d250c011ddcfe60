import { readFile } from 'node:fs/promises';
import { verifyReceipt } from '../auth/receipts.js';
import { errorMessage } from '../runtime/errors.js';
import { type Command, type CommandInput, requiredOption } from './command.js';
import { CliError } from './fleet-store.js';

async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    throw new CliError(`${path} cannot be read: ${errorMessage(error)}`);
  });
}

async function verify(input: CommandInput): Promise<Record<string, unknown>> {
  const receiptText = await textOf(input.argument);
  const path = requiredOption(input, 'jwks');
  const keysText = await textOf(path);
  try {
    const { kid, receipt } = await verifyReceipt(receiptText.trim(), JSON.parse(keysText));
    return { valid: true, kid, ...receipt };
  } catch (error) {
    throw new CliError(`The receipt is not valid: ${errorMessage(error)}.`);
  }
}

/** Commands about receipts of decisions. They need neither the database nor a network. */
export const RECEIPT_COMMANDS: Record<string, Command> = {
  'receipts verify': {
    usage: 'FILE --jwks FILE',
    summary: 'verify the receipt of a decision with the keys of /.well-known/jwks.json, without a network',
    arguments: [1, 1],
    options: ['jwks'],
    runAlone: verify,
  },
};
