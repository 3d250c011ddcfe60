import fc from 'fast-check';

/** An agent that serves any number of sessions, and one that serves one. */
export const AGENTS = ['steady', 'narrow'] as const;
export type AgentName = (typeof AGENTS)[number];

/** What can go wrong while a dispatch is on the record as sent, or about to be, and no byte of it has gone out. */
export const SEND_FAULTS = [
  /** The process loses all of its memory. */
  'dies',
  /** The database commits, and its answer is lost. */
  'answer lost',
  'canceled',
  'interrupted',
  'session closed',
  /** The agent connects anew: the epoch is raised. */
  'agent reconnects',
  /** The workflow takes the message over while its owner lives and is well within its lease. */
  'taken over',
  /** The lease runs out before the owner sends. */
  'slow',
  /** The same, and the workflow has taken over by then. */
  'slow and taken over',
  /** The others take the process for dead, the agents have gone to another, and then it goes on. */
  'outlived',
  'slow and outlived',
] as const;

/** What can go wrong between the agent's answer and its place on the record. */
export const ANSWER_FAULTS = ['dies', 'dies after', 'answer lost', 'canceled', 'taken over', 'agent resumes'] as const;

export type SendFault = (typeof SEND_FAULTS)[number];
export type AnswerFault = (typeof ANSWER_FAULTS)[number];

export const ANSWERS = ['completed', 'failed', 'asks', 'error', 'twice', 'in chunks'] as const;

/** Numbers stand for the messages and sessions there are, in order of their coming, modulo their number. */
export type Action =
  | {
      do: 'send';
      client: number;
      text: number;
      session: number | null;
      agent: AgentName;
      fault: SendFault | null;
    }
  | {
      do: 'answer';
      message: number;
      how: (typeof ANSWERS)[number];
      late: boolean;
      fault: AnswerFault | null;
    }
  | { do: 'cancel' | 'take over'; message: number }
  | { do: 'resolve'; message: number; resolution: 'confirmed' | 'declined' }
  | { do: 'close' | 'interrupt'; session: number }
  | { do: 'init'; agent: AgentName }
  | { do: 'leave' | 'resume' | 'reconnect'; agent: AgentName }
  | { do: 'die' | 'sweep' };

const some = fc.nat(5);
const agent = fc.constantFrom(...AGENTS);
const fault = <T>(faults: readonly T[]) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...faults) });

const send = fc.record({
  do: fc.constant('send' as const),
  client: fc.nat(9),
  text: fc.nat(5).map((n) => (n === 0 ? 1 : 0)),
  session: fc.option(fc.nat(2)),
  agent,
  fault: fault(SEND_FAULTS),
});
const answer = fc.record({
  do: fc.constant('answer' as const),
  message: some,
  how: fc.constantFrom(...ANSWERS),
  late: fc.nat(4).map((n) => n === 0),
  fault: fault(ANSWER_FAULTS),
});
const other: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constantFrom('cancel' as const, 'take over' as const), message: some }),
  fc.record({
    do: fc.constant('resolve' as const),
    message: some,
    resolution: fc.constantFrom('confirmed' as const, 'declined' as const),
  }),
  fc.record({ do: fc.constantFrom('close' as const, 'interrupt' as const), session: fc.nat(2) }),
  fc.record({ do: fc.constant('init' as const), agent }),
  fc.record({ do: fc.constantFrom('leave' as const, 'resume' as const, 'reconnect' as const), agent }),
  fc.record({ do: fc.constantFrom('die' as const, 'sweep' as const) }),
);

/** Scripts of things that happen to a platform one after the other, each with at most one fault in its middle. */
export const script: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof({ weight: 4, arbitrary: send }, { weight: 4, arbitrary: answer }, { weight: 3, arbitrary: other }),
  { minLength: 5, maxLength: 12, size: 'max' },
);
