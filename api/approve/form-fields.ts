import { isObject } from '../../contracts/a2a/proto-json.js';
import type { InputRequest } from '../../contracts/api/messages.js';

/** One input of the page. */
export interface FormField {
  name: string;
  label: string;
  description?: string;
  /** How it is shown; `list` takes one value a line. */
  input: 'text' | 'number' | 'checkbox' | 'select' | 'list';
  required: boolean;
  /** The values of a `select`, as JSON. */
  options: string[];
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

const readScalar = (type: unknown): ((posted: string) => unknown) =>
  type === 'number' || type === 'integer' ? readNumber : (posted) => posted;

function fieldOf(name: string, property: Record<string, unknown>, required: boolean): FormField {
  const types = [property.type].flat();
  const type = types.find((each) => each !== 'null');
  const description = text(property.description);
  const field = {
    name,
    label: text(property.title) ?? name,
    ...(description && { description }),
    required,
    options: [],
  };
  const values = 'const' in property ? [property.const] : property.enum;
  if (Array.isArray(values))
    return { ...field, input: 'select', options: values.map((value) => JSON.stringify(value)), read: readJson };
  if (type === 'boolean') return { ...field, input: 'checkbox', required: false, read: (posted) => posted === 'true' };
  if (type === 'array') {
    const read = readScalar(isObject(property.items) ? property.items.type : undefined);
    const lines = (posted: string) => posted.split(/\r\n|\r|\n/).filter((line) => line.trim() !== '');
    return { ...field, input: 'list', read: (posted) => lines(posted).map(read) };
  }
  const isNumber = type === 'number' || type === 'integer';
  return { ...field, input: isNumber ? 'number' : 'text', read: readScalar(type) };
}

/** The inputs of a form, from its flat JSON Schema, or from its list of fields. */
export function formFields({ schema, fields = [] }: Pick<InputRequest, 'schema' | 'fields'>): FormField[] {
  if (schema && isObject(schema.properties)) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    return Object.entries(schema.properties).map(([name, property]) =>
      fieldOf(name, isObject(property) ? property : {}, required.includes(name)),
    );
  }
  return fields.map(({ id, type, label, options }) =>
    fieldOf(id, { type, title: label, ...(options && { enum: options }) }, false),
  );
}

/** The prefix of the names of a form's values, which keeps them apart from `resolution` and `comment`. */
export const FIELD_PREFIX = 'field.';

/** The values of a form as they were posted. What was left empty is left out; a checkbox that is not ticked is false. */
export function postedValues(fields: readonly FormField[], posted: URLSearchParams): Record<string, unknown> {
  const values = fields.flatMap((field): [string, unknown][] => {
    const value = posted.get(`${FIELD_PREFIX}${field.name}`) ?? '';
    if (value === '' && field.input !== 'checkbox') return [];
    return [[field.name, field.read(value)]];
  });
  return Object.fromEntries(values);
}
