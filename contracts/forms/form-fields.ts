import type { InputRequest } from '../api/messages.js';
import { isObject } from '../json-guard.js';
import { type FlatProperty, flatProperty } from './flat-schema.js';

type NativeInput = 'text' | 'number' | 'checkbox' | 'date' | 'time' | 'datetime-local' | 'email' | 'url';

/** The inputs for texts of a format of JSON Schema. */
const BY_FORMAT: Record<string, NativeInput> = {
  date: 'date',
  time: 'time',
  'date-time': 'datetime-local',
  email: 'email',
  uri: 'url',
};

/** One input of the page. */
export interface FormField {
  name: string;
  label: string;
  description?: string | undefined;
  /** How it is shown: a type of HTML's input, a `select`, or a `list` that takes one value a line. */
  input: NativeInput | 'select' | 'list';
  /** The bounds that the browser checks: attributes of HTML's input. */
  bounds: Record<string, string>;
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

const WALL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?$/;

/** A point in time; without a zone, as a browser without scripts posts it, it is one of UTC, as the page says beside the field. */
function readTime(posted: string): string {
  const time = new Date(`${posted}Z`);
  return WALL_TIME.test(posted) && !Number.isNaN(time.getTime()) ? time.toISOString() : posted;
}

/** Bounds of a schema as attributes. A bound that is itself excluded is one of whole numbers only: others are checked when it is posted. */
function boundsOf(schema: Record<string, unknown>, input: FormField['input']): FormField['bounds'] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength } = schema;
  const isWhole = [schema.type].flat().every((type) => type === 'integer' || type === 'null');
  const beside = (bound: unknown, step: number) => (isWhole && typeof bound === 'number' ? bound + step : bound);
  const bounds =
    input === 'number'
      ? {
          min: minimum ?? beside(exclusiveMinimum, 1),
          max: maximum ?? beside(exclusiveMaximum, -1),
          step: isWhole ? (multipleOf ?? 1) : 'any',
        }
      : { minlength: minLength, maxlength: maxLength };
  const given = Object.entries(bounds).filter(([, bound]) => typeof bound === 'number' || bound === 'any');
  return input === 'number' || input === 'text'
    ? Object.fromEntries(given.map(([name, bound]) => [name, String(bound)]))
    : {};
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
  const isText = kind === 'string' && typeof property.format === 'string';
  const input = (isText && BY_FORMAT[property.format as string]) || (isNumber(types) ? 'number' : 'text');
  return { input, options, read: input === 'datetime-local' ? readTime : readerOf(types) };
}

/** A point in time as its input shows it, in UTC; empty where it is none. */
export function utcWallTime(value: unknown): string {
  const time = new Date(String(value));
  return Number.isNaN(time.getTime()) ? '' : time.toISOString().slice(0, 16);
}

/** A default as it would be posted. */
function initialOf(value: unknown, input: FormField['input']): string {
  if (value === undefined || value === null) return '';
  if (input === 'list') return [value].flat().join('\n');
  if (input === 'datetime-local') return utcWallTime(value);
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
    bounds: boundsOf(flat.schema, shown.input),
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
