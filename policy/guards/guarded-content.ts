import type { GuardDecision, GuardName, GuardStage } from '../../contracts/api/policies/guards.js';

/** A string of the content, with its place: `parts[0].text`, `arguments.url`. */
export interface GuardedText {
  path: string;
  text: string;
}

/** What guards inspect. Made by the functions of guarded-content.ts. */
export interface GuardedContent {
  stage: GuardStage;
  texts: readonly GuardedText[];
  /** The arguments of a tool call, as an object: the guards `path` and `egress` look at its members. */
  arguments?: Readonly<Record<string, unknown>>;
  /** What the guard `limits` compares; what is absent is not limited. */
  facts: {
    /** Bytes of the content as JSON in UTF-8. */
    bytes: number;
    /** Objects and arrays inside each other. */
    depth: number;
    /** Nested tool calls that wait for this one, or agents that a message came through. */
    hops?: number;
    /** How often the same tool was called with the same arguments by this dispatch, this call included. */
    repeats?: number;
  };
}

/** What a guard found. Never holds the content itself: findings get into events and error messages. */
export interface GuardFinding {
  guard: GuardName;
  /** Which of the guard's rules, for example `aws_access_key`. */
  rule: string;
  /** What happens at this stage. Never `require_approval` of `tool_result`: its agent is at work and waits for it. */
  decision: GuardDecision;
  /** A sentence for people. */
  reason: string;
  /** The place in the content: `parts[0].text`. */
  path: string;
}

/** The action that is inspected, as events name it: `send`, `dispatch`, `call`, `output`; `tool`: the name of a tool, null elsewhere. */
export interface GuardedAction {
  action: string;
  tool: string | null;
}

/** The guards of a tenant, compiled once per revision. */
export interface GuardSettings {
  /** Whether a guard looks at this stage at all. Where none does, there is no need to collect content. */
  inspects(stage: GuardStage): boolean;
  /**
   * All findings about the content, the most restrictive first; empty where nothing was found. Synchronous, in linear time.
   * @param options.canWait whether a human can be asked before anything happens: by default everywhere but at the stage `tool_result`.
   * If not, no finding is `require_approval`
   */
  inspect(content: GuardedContent, options?: { canWait?: boolean }): GuardFinding[];
  /** An inspector of one stream of text from an agent; undefined where no guard looks at `output`. @param path of its findings */
  streamInspector<Item>(path: string): StreamInspector<Item> | undefined;
}

/** The guards of tenants, for content about which no policy is asked: what agents give back, results of tool calls. */
export interface TenantGuards {
  /**
   * A tenant's guards: without a promise where they are in memory and confirmed; null where none looks at anything.
   * @throws PlatformError SERVICE_UNAVAILABLE (the promise rejects) while they cannot be read
   */
  guardsOf(tenantId: string): GuardSettings | null | Promise<GuardSettings | null>;
}

/** What a piece of a stream leads to. */
export interface StreamStep<Item> {
  /** What may be shown now, in the order in which it came. */
  released: Item[];
  /** What was found. After anything but `allow` nothing more is released. */
  findings: GuardFinding[];
}

/** Inspects a stream before it is released: no character of what a guard stops is ever released, however it was split. */
export interface StreamInspector<Item> {
  /**
   * @param text what the item adds to the stream
   * @param whole texts of the item that do not continue the stream, such as the strings of a data part
   */
  push(item: Item, text: string, whole?: readonly GuardedText[]): StreamStep<Item>;
  /** The stream is complete: releases what was held back, unless something is found in it. */
  end(): StreamStep<Item>;
}

/** What one guard finds, before its decision is added. */
export type Find = Pick<GuardFinding, 'rule' | 'reason' | 'path'>;
