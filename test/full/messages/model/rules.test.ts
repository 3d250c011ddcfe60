import { expect, test } from 'vitest';
import {
  type AgentAnswer,
  type AgentRoom,
  type Arrival,
  arrivalDefects,
  hasRoom,
  type MessageFacts,
  orderDefects,
  permittedEnds,
} from './rules.js';

const arrival = (at: number, how?: AgentAnswer, more: Partial<Arrival> = {}): Arrival => ({
  instanceId: 'a',
  dispatchId: `dsp_${at}`,
  at,
  ...(how && { answer: { how, at: at + 1 }, overAt: at + 1 }),
  ...more,
});
const facts = (more: Partial<MessageFacts> = {}): MessageFacts => ({
  ...{ hasTarget: true, isIdempotent: false, arrivals: [], decisions: [], cancelAsked: false, isCanceled: false },
  ...{ mayBeLost: false, hasWaited: false, wasAlone: false },
  ...more,
});
const LOST = 'failed AGENT_DISCONNECTED';
const NOBODY = 'failed TARGET_UNAVAILABLE';

test.each<[string, Partial<MessageFacts>, string[]]>([
  ['nothing has happened', {}, []],
  ['its agent has answered', { arrivals: [arrival(1, 'result')] }, ['completed']],
  ['its agent has failed', { arrivals: [arrival(1, 'failure')] }, ['failed HANDLER_ERROR']],
  ['its agent asks', { arrivals: [arrival(1, 'question')] }, []],
  ['its agent has left', { arrivals: [arrival(1)], mayBeLost: true }, [LOST]],
  ['its agent has left after its answer', { arrivals: [arrival(1, 'result')], mayBeLost: true }, ['completed', LOST]],
  ['an agent that may do it twice has left', { isIdempotent: true, mayBeLost: true, arrivals: [arrival(1)] }, []],
  ['no agent came in time', { hasWaited: true, wasAlone: true }, [NOBODY]],
  ['an agent has it after a long wait', { hasWaited: true, wasAlone: true, arrivals: [arrival(1)] }, []],
  ['there is no such agent', { hasTarget: false }, [NOBODY]],
  ['it is canceled', { isCanceled: true, cancelAsked: true, arrivals: [arrival(1, 'result')] }, ['canceled']],
  ['somebody cancels', { cancelAsked: true, arrivals: [arrival(1, 'result')] }, ['canceled', 'completed']],
])('%s: the permitted ends', (_, happened, ends) => {
  expect([...permittedEnds(facts(happened))].sort()).toEqual([...ends].sort());
});

test.each<[string, Partial<MessageFacts>, number]>([
  ['one agent', { arrivals: [arrival(1)] }, 0],
  ['two agents', { arrivals: [arrival(1), arrival(5)] }, 1],
  ['two agents, one after the other had failed', { arrivals: [arrival(1, 'failure'), arrival(5)] }, 1],
  ['two agents that may', { arrivals: [arrival(1), arrival(5)], isIdempotent: true, mayBeLost: true }, 0],
  ['two agents that may, although nothing was lost', { arrivals: [arrival(1), arrival(5)], isIdempotent: true }, 1],
  ['two agents after an answer', { arrivals: [arrival(1, 'question'), arrival(5)], decisions: [3] }, 0],
  ['two agents before the answer', { arrivals: [arrival(1, 'question'), arrival(5)], decisions: [6] }, 1],
  [
    'one agent, again after a lost socket',
    { arrivals: [arrival(1), arrival(5, undefined, { dispatchId: 'dsp_1' })] },
    0,
  ],
])('a message that reached %s: its defects', (_, happened, count) => {
  expect(arrivalDefects(facts(happened))).toHaveLength(count);
});

test('an ordered session is out of order when a later message arrives before the earlier one is over', () => {
  const turn = (name: string, sentAt: number, arrivals: Arrival[]) => ({
    name,
    sentAt,
    acceptedAt: sentAt + 1,
    arrivals,
  });
  const first = turn('first', 1, [arrival(3, 'result')]);
  expect(orderDefects([first, turn('second', 2, [arrival(5)])])).toEqual([]);
  expect(orderDefects([turn('first', 1, [arrival(3)]), turn('second', 2, [arrival(5)])])).toHaveLength(1);
  expect(orderDefects([turn('first', 1, [arrival(7, 'result')]), turn('second', 2, [arrival(5)])])).toHaveLength(1);
  expect(orderDefects([turn('at once', 1, [arrival(7, 'result')]), turn('with it', 1, [arrival(5)])])).toEqual([]);
});

const agent = (maxSessions: number, atWork: string[], more: Partial<AgentRoom> = {}): AgentRoom => {
  return { maxSessions, isOnline: true, atWork: new Set(atWork), ...more };
};
test.each<[string, boolean, AgentRoom, string | undefined]>([
  ['that has room', true, agent(2, ['s']), undefined],
  ['that is full', false, agent(1, ['s']), undefined],
  ['without a bound', true, agent(0, ['s']), undefined],
  ['that is away', false, agent(0, [], { isOnline: false }), undefined],
  ['that is full and works on the session', true, agent(1, ['s']), 's'],
  ['that is full with another session', false, agent(1, ['t']), 's'],
])('an agent %s: whether it can take a message is %s', (_, expected, room, session) => {
  expect(hasRoom(room, session)).toBe(expected);
});
