import type { Part } from '../../contracts/a2a/parts.js';
import type { GuardStage } from '../../contracts/api/policies/guards.js';
import { placeOf } from '../places/members.js';
import type { PolicyRequest } from '../policy-request.js';
import type { GuardedContent, GuardedText } from './guarded-content.js';

/** Nesting that is walked; the platform takes nothing that is deeper (`LIMITS.jsonDepth` and the envelope of a frame around it). */
const DEPTH_MAX = 64;
/** Base64 of a file that is inspected as text; a text file of a message has no more. */
const FILE_CHARS_MAX = 1024 * 1024;

/** A file in which more than every tenth character is unreadable holds no text. */
const BINARY_SHARE = 10;

type Facts = GuardedContent['facts'];
/** What is known of a tool call. `repeats` counts it when it is first asked for, which happens only where a guard bounds that. */
type CallFacts = { hops?: number; repeats?: () => number };

/** Content whose texts and facts are collected when a guard first asks for them: most content is inspected by few guards. */
class LazyContent implements GuardedContent {
  readonly stage: GuardStage;
  readonly arguments?: Readonly<Record<string, unknown>>;
  readonly facts: Facts;
  readonly #value: unknown;
  readonly #root: string;
  #texts: GuardedText[] | undefined;

  constructor(stage: GuardStage, root: string, value: unknown, { hops, repeats }: CallFacts = {}) {
    this.stage = stage;
    this.#root = root;
    this.#value = value;
    if (stage === 'tool_arguments') this.arguments = value as Record<string, unknown>;
    let counted: number | undefined;
    this.facts = {
      ...(hops !== undefined && { hops }),
      get bytes() {
        return Buffer.byteLength(JSON.stringify(value) ?? '');
      },
      get depth() {
        return depthOf(value);
      },
      get repeats() {
        counted ??= repeats?.() ?? 0;
        return counted;
      },
    };
  }

  get texts(): readonly GuardedText[] {
    if (!this.#texts) {
      this.#texts = textsOf(this.#root, this.#value);
      if (this.stage !== 'tool_arguments') this.#texts.push(...joinedParts(this.#root, this.#value));
    }
    return this.#texts;
  }
}

/** What guards inspect of a request to the policies: a message that enters, the arguments of a tool call; undefined for anything else. */
export function contentOf({ scope, action, arguments: given }: PolicyRequest): GuardedContent | undefined {
  if (scope === 'admission' && action === 'send') return new LazyContent('message', '', given);
  return scope === 'tool' && given ? toolArguments(given) : undefined;
}

/** What goes to an agent with a message: its parts and its metadata. */
export function messageContent(parts: readonly Part[], metadata: Readonly<Record<string, unknown>>): GuardedContent {
  return new LazyContent('message', '', { parts, metadata });
}

/** What a human or a caller answers to a question: it goes to the agent. */
export function answerContent(answer: Readonly<Record<string, unknown>>): GuardedContent {
  return new LazyContent('message', '', answer);
}

/** What an agent gives back: artifacts, its status message, its question, the text of its error. */
export function outputContent(output: Readonly<Record<string, unknown>>): GuardedContent {
  return new LazyContent('output', '', output);
}

/**
 * The arguments of a tool call.
 * @param facts.hops calls inside each other, this one included
 * @param facts.repeats from `RepeatedCalls`
 */
export function toolArguments(given: Readonly<Record<string, unknown>>, facts: CallFacts = {}): GuardedContent {
  return new LazyContent('tool_arguments', 'arguments', given, facts);
}

/** The result of a tool call, or the error in its place. */
export function toolResult(result: unknown): GuardedContent {
  return new LazyContent('tool_result', 'result', result);
}

/** The strings of a value with their places, the keys of objects among them. */
export function textsOf(root: string, value: unknown): GuardedText[] {
  const texts: GuardedText[] = [];
  collect(texts, root, value, 0);
  return texts;
}

/**
 * The texts of several parts, joined by line ends and by nothing, as receivers may join them: so a text that is divided among parts is found
 * too. Text parts are those of A2A and of the Model Context Protocol. Empty for one part or none.
 */
function joinedParts(root: string, value: unknown): GuardedText[] {
  const parts: GuardedText[] = [];
  collectParts(parts, root, value, 0);
  const [first] = parts;
  if (!first || parts.length === 1) return [];
  const path = first.path.replace(/\[\d+\]$/, '');
  return ['', '\n'].map((between) => ({ path, text: parts.map(({ text }) => text).join(between) }));
}

function collectParts(parts: GuardedText[], path: string, value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null || depth >= DEPTH_MAX) return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++)
      collectParts(parts, `${path}[${index}]`, value[index], depth + 1);
    return;
  }
  const { kind, type, text } = value as Record<string, unknown>;
  if ((kind === 'text' || type === 'text') && typeof text === 'string') parts.push({ path, text });
  else for (const [key, member] of Object.entries(value)) collectParts(parts, placeOf(path, key), member, depth + 1);
}

function collect(texts: GuardedText[], path: string, value: unknown, depth: number): void {
  if (typeof value === 'string') {
    if (value !== '') texts.push({ path, text: value });
  } else if (typeof value === 'object' && value !== null && depth < DEPTH_MAX) {
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) collect(texts, `${path}[${index}]`, value[index], depth + 1);
    } else collectMembers(texts, path, value as Record<string, unknown>, depth);
  }
}

function collectMembers(texts: GuardedText[], path: string, value: Record<string, unknown>, depth: number): void {
  for (const key of Object.keys(value)) {
    const place = placeOf(path, key);
    if (key.length > KEY_CHARS) texts.push({ path: place, text: key });
    const member = value[key];
    const file = key === 'bytes' && typeof member === 'string' ? textOfFile(member) : undefined;
    if (file === undefined) collect(texts, place, member, depth + 1);
    else texts.push({ path: place, text: file });
  }
}

/** Shorter keys hold nothing that a guard finds. */
const KEY_CHARS = 15;
/** The text in the base64 of a file, with or without line ends (MIME); undefined for what is not base64 of text in UTF-8, or in UTF-16 of ASCII. */
function textOfFile(base64: string): string | undefined {
  if (base64.length > FILE_CHARS_MAX || !/^[A-Za-z0-9+/_\s-]*(?:=\s*){0,2}$/.test(base64)) return undefined;
  const text = Buffer.from(base64, 'base64').toString('utf8').replaceAll('\0', '');
  const unreadable = text.split('\uFFFD').length - 1;
  return unreadable * BINARY_SHARE > text.length ? undefined : text;
}

/** Objects and arrays inside each other, up to `DEPTH_MAX`. */
function depthOf(value: unknown, above = 0): number {
  if (typeof value !== 'object' || value === null || above >= DEPTH_MAX) return above;
  let deepest = above + 1;
  for (const member of Object.values(value)) deepest = Math.max(deepest, depthOf(member, above + 1));
  return deepest;
}
