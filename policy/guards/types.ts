import type { GuardDecision, GuardName, GuardStage } from '../../contracts/api/guards.js';

/** A string of the content, with its place: `parts[0].text`, `arguments.url`. */
export interface GuardedText {
  path: string;
  text: string;
}

/** What guards inspect. Made by the functions of guarded-content.ts. */
export interface GuardedContent {
  stage: GuardStage;
  texts: readonly GuardedText[];
  /** Of a tool call, as an object: the guards `path` and `egress` look at its members. */
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
  /** What happens; that of a guard that never denies alone is `deny` only beside another finding. */
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

/** The guards of a tenant, compiled once per revision. Opaque outside policy/guards. */
export interface GuardSettings {
  /** Whether a guard looks at this stage at all. Where none does, do not collect content. */
  inspects(stage: GuardStage): boolean;
  /** All findings about the content, the most restrictive first; empty where nothing was found. */
  inspect(content: GuardedContent): GuardFinding[];
  /** An inspector of a stream of text that comes from an agent; undefined where no guard looks at `output`. */
  streamInspector(): StreamInspector | undefined;
}

/** A piece of a stream: `item` is released when everything that could begin in its text has been seen. */
export interface StreamStep<Item> {
  /** What may be shown now, in order. */
  released: Item[];
  /** What was found; anything but `allow` ends the stream, and nothing more is released. */
  findings: GuardFinding[];
}

/** Inspects the pieces of a stream before they are released: no character of what a guard finds is ever released, however it was split. */
export interface StreamInspector {
  push<Item>(item: Item, texts: readonly GuardedText[]): StreamStep<Item>;
  /** The stream is complete: releases what was held back, or tells what was found in it. */
  end<Item>(): StreamStep<Item>;
}
