import {
  GUARD_CONFIGS,
  GUARD_DEFAULTS,
  type GuardConfigs,
  type GuardDecision,
  GuardName,
  GuardStage,
} from '../../contracts/api/policies/guards.js';
import type { Tx } from '../../db/pool.js';
import { AddressGuard } from '../../http/outbound-guard.js';
import { hostGlob } from '../places/hosts.js';
import { URL_SPAN } from '../places/urls.js';
import { type EgressRules, findHosts } from './egress-guard.js';
import { type GuardRow, readGuards } from './guard-store.js';
import type { Find, GuardedContent, GuardFinding, GuardSettings, StreamInspector } from './guarded-content.js';
import { isHidden } from './injection/hidden-text.js';
import { findInjections, HIDDEN_FIND, injectionsIn } from './injection/injection-guard.js';
import { PHRASE_CHARS } from './injection/injection-rules.js';
import { findExcess, limitsStage } from './limits-guard.js';
import { findPaths, rootOf } from './path-guard.js';
import { REACH, SPAN } from './secrets/secret-rules.js';
import { findSecrets, secretRules, secretsIn } from './secrets/secrets-guard.js';
import { HoldingInspector, type StreamRules } from './stream-inspector.js';

/** One guard of a tenant, ready to inspect. */
interface CompiledGuard {
  name: GuardName;
  decision: GuardDecision;
  stages: ReadonlySet<GuardStage>;
  find(content: GuardedContent): Find[];
  /** Finds in a stream; absent where the guard needs the whole. `findRaw`: in text with what people cannot see. */
  stream?: Pick<StreamRules, 'span' | 'reach'> & {
    find(visible: string, begins: number, ends: number): Find[];
    findRaw?: (text: string, isComplete: boolean) => Find[];
  };
}

/** The order of decisions, the most restrictive first. */
const STRICTNESS: readonly GuardDecision[] = ['deny', 'require_approval', 'allow'];
const strictness = ({ decision }: Pick<GuardFinding, 'decision'>): number => STRICTNESS.indexOf(decision);
/** Findings of one guard in one content that are reported; more say nothing new. */
const FINDINGS_MAX = 16;

/**
 * Compiles a tenant's guards.
 * @param rows the guards that the tenant has changed; the others have the platform's defaults
 * @param allowsAddress whether the platform itself may reach an address
 * @throws z.ZodError for a config that does not fit: then nothing may be allowed
 */
export function compileGuards(
  rows: readonly Omit<GuardRow, 'updated_at' | 'updated_by'>[],
  allowsAddress: EgressRules['allowsAddress'],
): GuardSettings {
  const guards = GuardName.options.flatMap((name) => {
    const { enabled, decision, config } = rows.find(({ guard }) => guard === name) ?? {
      ...GUARD_DEFAULTS[name],
      config: {},
    };
    return enabled ? [{ name, decision: decision as GuardDecision, ...COMPILE[name](config, allowsAddress) }] : [];
  });
  return new CompiledGuards(guards);
}

/**
 * What `TenantPoliciesDeps.readGuards` needs.
 * @param allowCidrs the ranges of private addresses that the platform itself may reach
 */
export function createGuardReader(allowCidrs: readonly string[]) {
  const addresses = new AddressGuard(allowCidrs);
  return async (tx: Tx, tenantId: string): Promise<GuardSettings> =>
    compileGuards(await readGuards(tx, tenantId), (address) => addresses.allows(address));
}

type Compile = (
  config: unknown,
  allowsAddress: EgressRules['allowsAddress'],
) => Omit<CompiledGuard, 'name' | 'decision'>;

const COMPILE: Record<GuardName, Compile> = {
  path: (config) => {
    const { allowed_roots } = GUARD_CONFIGS.path.parse(config);
    const roots = allowed_roots.map(rootOf);
    return { stages: new Set(['tool_arguments']), find: (content) => findPaths(content.arguments ?? {}, { roots }) };
  },
  egress: (config, allowsAddress) => {
    const { allowed_hosts, denied_hosts, stages } = GUARD_CONFIGS.egress.parse(config);
    const rules = { allowedHosts: allowed_hosts.map(hostGlob), deniedHosts: denied_hosts.map(hostGlob), allowsAddress };
    const find = (visible: string, _begins: number, ends: number): Find[] =>
      findHosts({ texts: [{ path: '', text: wholeWords(visible, ends, URL_SPAN) }] }, rules);
    return {
      stages: new Set(stages),
      find: (content) => findHosts(content, rules),
      stream: { span: URL_SPAN + WORD_MARGIN, reach: 0, find },
    };
  },
  secrets: (config) => {
    const { detect, stages } = GUARD_CONFIGS.secrets.parse(config);
    const rules = secretRules(detect);
    const find = (visible: string, begins: number, ends: number): Find[] =>
      [...secretsIn(visible, rules, begins, ends)].map(({ rule, what }) => ({ rule, ...contentHolds(what) }));
    return {
      stages: new Set(stages),
      find: ({ texts }) => findSecrets(texts, rules),
      stream: { span: SPAN, reach: REACH, find },
    };
  },
  prompt_injection: (config) => {
    const { stages } = GUARD_CONFIGS.prompt_injection.parse(config);
    const find = (visible: string, _begins: number, ends: number): Find[] =>
      injectionsIn(wholeWords(visible, ends, PHRASE_CHARS)).map(({ rule, what }) => ({ rule, ...contentHolds(what) }));
    return {
      stages: new Set(stages),
      find: ({ texts }) => findInjections(texts),
      stream: {
        ...{ span: PHRASE_CHARS + WORD_MARGIN, reach: PHRASE_CHARS, find },
        findRaw: (text, isComplete) => (isHidden(text, isComplete) ? [{ ...HIDDEN_FIND, path: '' }] : []),
      },
    };
  },
  limits: (config) => {
    const limits: GuardConfigs['limits'] = GUARD_CONFIGS.limits.parse(config);
    const stages = new Set(GuardStage.options.filter((stage) => limitsStage(limits, stage)));
    return { stages, find: (content) => findExcess(content, limits) };
  },
};

/** How much longer than what is looked for a word may be before its beginning is released. */
const WORD_MARGIN = 64;
/** What may stand inside a host or a marker. */
const INSIDE_WORD = /[\p{L}\p{N}_.:@%[\]|-]/u;

/**
 * The text up to `ends`, without a last word that may go on. If that word is too long to be held back, the text ends at the last place in it
 * where a match could have ended.
 * @param span characters of the longest match
 */
function wholeWords(visible: string, ends: number, span: number): string {
  if (ends >= visible.length) return visible;
  let end = ends;
  while (end > 0 && !/\s/.test(visible[end - 1] as string)) end--;
  if (ends - end < span) return visible.slice(0, end);
  let cut = ends;
  while (cut > ends - span && INSIDE_WORD.test(visible[cut - 1] as string)) cut--;
  return visible.slice(0, cut > ends - span ? cut : ends);
}

const contentHolds = (what: string) => ({ path: '', reason: `The content holds ${what}.` });

class CompiledGuards implements GuardSettings {
  readonly #guards: Record<GuardStage, CompiledGuard[]>;
  readonly inspects: GuardSettings['inspects'];

  constructor(guards: readonly CompiledGuard[]) {
    const at = (stage: GuardStage) => guards.filter(({ stages }) => stages.has(stage));
    this.#guards = {
      message: at('message'),
      output: at('output'),
      tool_arguments: at('tool_arguments'),
      tool_result: at('tool_result'),
    };
    const stages = new Set(GuardStage.options.filter((stage) => this.#guards[stage].length > 0));
    this.inspects = stages.has.bind(stages);
  }

  inspect(content: GuardedContent, { canWait = CAN_WAIT.has(content.stage) } = {}): GuardFinding[] {
    const found = this.#guards[content.stage].flatMap((guard) => withDecision(guard, guard.find(content)));
    return ranked(found, canWait);
  }

  streamInspector<Item>(path: string): StreamInspector<Item> | undefined {
    const guards = this.#guards.output;
    const streaming = guards.flatMap(({ stream, ...guard }) => (stream ? [{ ...guard, stream }] : []));
    if (streaming.length === 0) return undefined;
    const most = (length: 'span' | 'reach') => Math.max(...streaming.map(({ stream }) => stream[length]));
    const all = (find: (guard: (typeof streaming)[number]) => Find[]): GuardFinding[] =>
      ranked(
        streaming.flatMap((guard) => withDecision(guard, find(guard), path)),
        CAN_WAIT.has('output'),
      );
    return new HoldingInspector<Item>({
      span: most('span'),
      reach: most('reach'),
      inspect: (visible, begins, ends) => all(({ stream }) => stream.find(visible, begins, ends)),
      ...(streaming.some(({ stream }) => stream.findRaw) && {
        inspectRaw: (text: string, isComplete: boolean) =>
          all(({ stream }) => stream.findRaw?.(text, isComplete) ?? []),
      }),
      inspectWhole: (texts) => this.inspect({ stage: 'output', texts, facts: { bytes: 0, depth: 0 } }),
    });
  }
}

function withDecision({ name, decision }: CompiledGuard, found: readonly Find[], path?: string): GuardFinding[] {
  const distinct = new Map(found.map((find) => [`${find.rule} ${find.path}`, find]));
  return [...distinct.values()]
    .slice(0, FINDINGS_MAX)
    .map((find) => ({ guard: name, decision, ...find, ...(path !== undefined && { path }) }));
}

/** Where a human can be asked before anything happens. The result of a tool cannot wait: its agent is at work. */
const CAN_WAIT: ReadonlySet<GuardStage> = new Set(['message', 'output', 'tool_arguments']);

/**
 * The decision that holds for a finding. A found injection is a guess, which never denies alone: beside findings of other guards it has its own
 * decision, alone it asks a human. If the content cannot wait for a human, asking becomes denying; a guess alone is then only recorded.
 */
function decisionOf({ guard, decision }: GuardFinding, alone: boolean, canWait: boolean): GuardDecision {
  const isGuess = alone && guard === 'prompt_injection';
  const decided = isGuess && decision === 'deny' ? 'require_approval' : decision;
  if (decided !== 'require_approval' || canWait) return decided;
  return isGuess ? 'allow' : 'deny';
}

/** The findings with the decisions that hold, the most restrictive first. */
function ranked(found: readonly GuardFinding[], canWait: boolean): GuardFinding[] {
  if (found.length === 0) return [];
  const alone = found.every(({ guard }) => guard === 'prompt_injection');
  const decided = found.map((finding) => ({ ...finding, decision: decisionOf(finding, alone, canWait) }));
  return decided.sort((one, other) => strictness(one) - strictness(other));
}
