import type { InputRequest } from '../../contracts/api/messages.js';
import { visible } from '../../contracts/visible-text.js';
import { CliError } from '../fleet-store.js';
import type { Terminal } from './terminal.js';

/** What is asked, for whoever decides. */
function questionText({ paint }: Pick<Terminal, 'paint'>, request: InputRequest): string {
  const { title, prompt, tool, arguments: given, source } = request;
  const call = tool === undefined ? [] : [`${paint('bold', tool)} ${visible(JSON.stringify(given ?? {}, null, 2))}`];
  const lines = [
    paint('yellow', title || prompt),
    ...(title !== '' && prompt !== title ? [visible(prompt)] : []),
    ...call,
  ];
  return `${lines.filter((line) => line !== '').join('\n')}\n${paint('dim', `(asked by: ${source})`)}\n`;
}

/** A field of a form, as it is asked for. */
interface Field {
  id: string;
  type: string;
  label: string;
  options: unknown[];
}

function fieldsOf({ fields, schema }: InputRequest): Field[] {
  if (fields) return fields.map(({ id, type, label = id, options = [] }) => ({ id, type, label, options }));
  const properties = (schema?.properties ?? {}) as Record<string, { type?: string; title?: string; enum?: unknown[] }>;
  return Object.entries(properties).map(([id, { type = 'string', title = id, enum: options = [] }]) => ({
    ...{ id, type, label: title, options },
  }));
}

/** What was typed as a value of the field. Text that is no such value is left to the platform to refuse. */
function valueFor({ type, options }: Field, text: string): unknown {
  const option = options.find((one) => String(one) === text);
  if (option !== undefined) return option;
  if (type === 'boolean') return /^(y|yes|true)$/i.test(text) || (/^(n|no|false)$/i.test(text) ? false : text);
  if (type === 'number' || type === 'integer') return Number.isNaN(Number(text)) ? text : Number(text);
  if (type !== 'array' && type !== 'object') return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

async function askForm(ask: NonNullable<Terminal['ask']>, request: InputRequest) {
  const asked = fieldsOf(request);
  if (asked.length === 0) asked.push({ id: 'text', type: 'string', label: 'Answer', options: [] });
  const values: Record<string, unknown> = {};
  for (const field of asked) {
    const options = field.options.length > 0 ? ` (${field.options.join(', ')})` : '';
    const text = await ask(visible(`${field.label}${options}: `));
    if (text === null) return null;
    if (text !== '') values[field.id] = valueFor(field, text);
  }
  return values;
}

/**
 * Asks whoever sits at the terminal.
 * @returns the `resolution` of `/messages/{id}/resolve`; null where nobody answers
 */
export async function askPerson(
  terminal: Terminal,
  request: InputRequest,
): Promise<string | Record<string, unknown> | null> {
  const { ask } = terminal;
  if (!ask) return null;
  terminal.note(questionText(terminal, request));
  if (request.kind === 'form') return askForm(ask, request);
  for (;;) {
    const answer = await ask(request.kind === 'approval' ? 'Approve? [yes/no] ' : 'Confirm? [yes/no] ');
    if (answer === null) return null;
    if (/^(y|yes)$/i.test(answer.trim())) return 'yes';
    if (/^(n|no)$/i.test(answer.trim())) return 'no';
  }
}

/** The values of `--data`. @throws CliError unless it is a JSON object */
export function dataOf(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The same as any other value that is no object.
  }
  throw new CliError('--data: must be a JSON object, for example {"city":"Berlin"}.');
}
