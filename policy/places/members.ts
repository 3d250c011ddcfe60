/** Names that the place of a finding shows; any other is `*`. A key may be the secret that was found, and findings get into events. */
const SHOWN_KEY = /^(?:[A-Za-z_-]{1,48}|[A-Za-z_][\w-]{0,14})$/;
/** Characters of a name that count. Of a longer one the end is taken: it says what kind of thing the member is. */
const KEY_CHARS_MAX = 64;
/** Smaller numbers count things; larger ones may be addresses: 2130706433 is 127.0.0.1. */
const ADDRESS_MIN = 2 ** 24;
/** Members that hold a command, and its arguments where they stand beside it. */
const COMMAND_KEY = /(?:^|[_.-])(?:command|command_line|cmd|shell|script|program|executable)$/;
const COMMAND_ARGUMENTS_KEY = /^(?:args|argv|arguments)$/;

/** @param path the place, as findings name it; @param key the name of the member that holds the text, in snake case */
type Visitor = (path: string, key: string, text: string) => void;

/** The place of an object's member. */
export function placeOf(path: string, key: string): string {
  const name = SHOWN_KEY.test(key) ? key : '*';
  return path === '' ? name : `${path}.${name}`;
}

/** `targetURL` as `target_url`. */
export function snakeCase(name: string): string {
  return name
    .slice(-KEY_CHARS_MAX)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase();
}

/** Whether a member of this name holds a command. */
export function isCommandKey(key: string): boolean {
  return COMMAND_KEY.test(key);
}

/**
 * Calls `visitor` with every text of a value and the name of the member that holds it, through arrays. A command in an array, or with its
 * arguments in a member beside it, comes once more as one line. The depth is bounded at the edge.
 */
export function visitTexts(path: string, key: string, value: unknown, visitor: Visitor): void {
  if (typeof value === 'string') visitor(path, key, value);
  else if (typeof value === 'number') {
    if (value >= ADDRESS_MIN) visitor(path, key, String(value));
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) visitTexts(`${path}[${index}]`, key, item, visitor);
    if (isCommandKey(key)) visitor(path, key, wordsOf(value).join(' '));
  } else if (typeof value === 'object' && value !== null) visitMembers(path, value, visitor);
}

function visitMembers(path: string, value: object, visitor: Visitor): void {
  let command: { place: string; text: string } | undefined;
  let rest: string[] | undefined;
  for (const [name, member] of Object.entries(value)) {
    const key = snakeCase(name);
    const place = placeOf(path, name);
    visitTexts(place, key, member, visitor);
    if (isCommandKey(key) && typeof member === 'string') command = { place, text: member };
    else if (COMMAND_ARGUMENTS_KEY.test(key)) rest = wordsOf(member);
  }
  if (command && rest) visitor(command.place, 'command', [command.text, ...rest].join(' '));
}

function wordsOf(value: unknown): string[] {
  return [value].flat().filter((word) => typeof word === 'string');
}
