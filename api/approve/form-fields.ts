import { isObject } from '../../contracts/a2a/proto-json.js';
import type { InputRequest } from '../../contracts/api/messages.js';
import { type FlatProperty, flatProperty } from '../../messages/input/form.js';

/** One input of the page. */
export interface FormField {
  name: string;
  label: string;
  description?: string | undefined;
  /** How it is shown; `list` takes one value a line. */
  input: 'text' | 'number' | 'checkbox' | 'select' | 'list';
  required: boolean;
  /** What a `select` offers: values as JSON, and what is shown for them. */
  options: { value: string; label: string }[];
  /** What is sent where it is left empty; without it, nothing. */
  empty?: null;
  /** What stands in it at first, as it would be posted: the default of the schema. */
  initial: string;
  /** Reads what was posted as the value that the form's schema wants. */
  read(posted: string): unknown;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** A number where the text is one; else the text, which the schema then refuses by name. */
function readNumber(posted: string): unknown {
  const number = Number(posted);
  return posted.trim() === '' || !Number.isFinite(number) ? posted : number;
}

function readJson(posted: string): unknown {
  try {
    return JSON.parse(posted);
  } catch {
    return posted;
  }
}

const NUMBERS: readonly unknown[] = ['number', 'integer'];
const isNumber = (types: readonly unknown[]) => types.length > 0 && types.every((type) => NUMBERS.includes(type));
const readerOf = (types: readonly unknown[]): ((posted: string) => unknown) =>
  isNumber(types) ? readNumber : (posted) => posted;

/** The values among which people choose; null where they write or tick. A truth value that may be left open has three answers. */
function choicesOf(property: Record<string, unknown>, types: readonly unknown[], mayBeNull: boolean): unknown[] | null {
  if ('const' in property) return [property.const];
  if (Array.isArray(property.enum)) return property.enum;
  return mayBeNull && types.join() === 'boolean' ? [true, false] : null;
}

function optionsOf(choices: readonly unknown[], titles: ReadonlyMap<string, string>): FormField['options'] {
  return choices
    .filter((choice) => choice !== null)
    .map((choice) => {
      const value = JSON.stringify(choice);
      return { value, label: titles.get(value) ?? (typeof choice === 'string' ? choice : value) };
    });
}

/** How a value is entered. */
function inputOf(
  { schema: property, titles }: FlatProperty,
  types: readonly unknown[],
  choices: readonly unknown[] | null,
): Pick<FormField, 'input' | 'options' | 'read'> {
  const options: FormField['options'] = [];
  if (choices) return { input: 'select', options: optionsOf(choices, titles), read: readJson };
  const kind = types.join();
  if (kind === 'boolean') return { input: 'checkbox', options, read: (posted) => posted === 'true' };
  if (kind === 'array') {
    const read = readerOf(isObject(property.items) ? [property.items.type ?? []].flat() : []);
    const lines = (posted: string) => posted.split(/\r\n|\r|\n/).filter((line) => line.trim() !== '');
    return { input: 'list', options, read: (posted) => lines(posted).map(read) };
  }
  return { input: isNumber(types) ? 'number' : 'text', options, read: readerOf(types) };
}

/** A default as it would be posted. */
function initialOf(value: unknown, input: FormField['input']): string {
  if (value === undefined || value === null) return '';
  if (input === 'list') return [value].flat().join('\n');
  return typeof value === 'string' && input !== 'select' ? value : JSON.stringify(value);
}

function fieldOf(name: string, given: unknown, isRequired: boolean): FormField {
  const flat = flatProperty(given);
  const { title, description, type } = flat.schema;
  const named = [type ?? []].flat();
  const types = named.filter((one) => one !== 'null');
  const choices = choicesOf(flat.schema, types, named.includes('null'));
  const mayBeNull = choices?.includes(null) ?? named.includes('null');
  const shown = inputOf(flat, types, choices);
  return {
    name,
    label: text(title) ?? name,
    description: text(description),
    ...shown,
    required: isRequired && !mayBeNull && shown.input !== 'checkbox',
    ...(isRequired && mayBeNull && { empty: null }),
    initial: initialOf(isObject(given) ? given.default : undefined, shown.input),
  };
}

/** The inputs of a form, from its flat JSON Schema, or from its list of fields. */
export function formFields({ schema, fields = [] }: Pick<InputRequest, 'schema' | 'fields'>): FormField[] {
  if (schema && isObject(schema.properties)) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    return Object.entries(schema.properties).map(([name, property]) =>
      fieldOf(name, property, required.includes(name)),
    );
  }
  return fields.map(({ id, type, label, options }) =>
    fieldOf(id, { type, title: label, ...(options && { enum: options }) }, false),
  );
}

/** The prefix of the names of a form's values, which keeps them apart from `resolution` and `comment`. */
export const FIELD_PREFIX = 'field.';

/** The values of a form as they were posted. What was left empty is null where it has to be sent, else left out; a checkbox that is not ticked is false. */
export function postedValues(fields: readonly FormField[], posted: URLSearchParams): Record<string, unknown> {
  const values = fields.flatMap((field): [string, unknown][] => {
    const value = posted.get(`${FIELD_PREFIX}${field.name}`) ?? '';
    if (value !== '' || field.input === 'checkbox') return [[field.name, field.read(value)]];
    return field.empty === undefined ? [] : [[field.name, field.empty]];
  });
  return Object.fromEntries(values);
}
