import { describe, expect, test } from 'vitest';
import { PlanProposal } from '../../contracts/api/plans.js';
import { graphOf } from '../../plans/plan-graph.js';
import { referencesIn, withOutputs } from '../../plans/steps/templates.js';

type Given = { id?: string; message?: unknown; after?: string[] };
const steps = (given: Given[]) =>
  PlanProposal.parse({
    description: 'a plan',
    steps: given.map(({ id, message = 'go', after = [] }) => ({
      description: 'd',
      message,
      depends_on: after,
      ...(id !== undefined && { step_id: id }),
    })),
  }).steps;
const waiting = (id: string, ...others: string[]): Given => ({ id, after: others });
const text = (value: string) => ({ kind: 'text' as const, text: value });

describe('the graph of a plan', () => {
  test('names the steps that have no id, and knows dependencies by place', () => {
    const graph = graphOf(steps([{}, { after: ['step_1'] }, { id: 'end', after: ['step_2', 'step_1', 'step_2'] }]));
    expect(graph.map(({ step_id, depends_on }) => [step_id, depends_on])).toEqual([
      ['step_1', []],
      ['step_2', [0]],
      ['end', [0, 1]],
    ]);
  });

  test('a step depends on the steps whose outputs its texts use', () => {
    const message = [text('{{steps.a.output}}'), { kind: 'data', data: { x: '{{steps.c.output}}' } }];
    const graph = graphOf(steps([{ id: 'a' }, { id: 'b', message, after: [] }, { id: 'c' }]));
    expect(graph[1]?.depends_on).toEqual([0]);
  });

  test.each<[string, Given[], RegExp]>([
    ['two steps of one id', [{ id: 'a' }, { id: 'a' }], /steps\.1\.step_id/],
    ['a given id that is the default of another', [{ id: 'step_2' }, {}], /steps\.1\.step_id/],
    ['an unknown dependency', [{ id: 'a', after: ['b'] }], /steps\.0\.depends_on.*\bb\b/],
    ['an output of an unknown step', [{ id: 'a', message: '{{steps.b.output}}' }], /steps\.0\.message.*\bb\b/],
    ['what is no output', [{ id: 'a' }, { message: '{{steps.a.result}}' }], /steps\.1\.message/],
    ['a step that depends on itself', [{ id: 'a', after: ['a'] }], /waits for itself/],
    ['a step that uses its own output', [{ id: 'a', message: '{{ steps.a.output }}' }], /waits for itself/],
    ['a cycle of two', [waiting('a', 'b'), waiting('b', 'a')], /waits for itself/],
    [
      'a cycle behind a valid step',
      [waiting('a'), waiting('b', 'a', 'd'), waiting('c', 'b'), { id: 'd', message: '{{steps.c.output}}' }],
      /waits for itself/,
    ],
  ])('%s is refused', (_what, given, problem) => {
    expect(() => graphOf(steps(given))).toThrow(
      expect.objectContaining({ code: 'BAD_REQUEST', message: expect.stringMatching(problem) }),
    );
  });
});

describe('templates', () => {
  test('outputs are filled into texts, as often as they are named', () => {
    const parts = [text('{{steps.a.output}} and {{ steps.b-1.output }}'), text('{{steps.a.output}}')];
    const outputs = new Map(Object.entries({ a: 'A', 'b-1': 'B' }));
    expect(withOutputs(parts, outputs)).toEqual([text('A and B'), text('A')]);
  });

  test('an output stays as it is: no pattern of a replacement and no reference in it is carried out', () => {
    const outputs = new Map(Object.entries({ a: "$& $1 $' {{steps.b.output}}", b: 'secret' }));
    expect(withOutputs([text('<{{steps.a.output}}>')], outputs)).toEqual([text("<$& $1 $' {{steps.b.output}}>")]);
  });

  test('other parts and other braces stay', () => {
    const parts = [{ kind: 'data' as const, data: { text: '{{steps.a.output}}' } }, text('{{a}} {steps.a.output}')];
    expect(withOutputs(parts, new Map([['a', 'A']]))).toEqual(parts);
    expect(referencesIn(parts)).toEqual({ uses: new Map(), invalid: [] });
  });

  test('each use of an output counts', () => {
    const parts = [text('{{steps.a.output}} {{ steps.a.output }} {{steps.b.output}}'), text('{{steps.a.output}}')];
    expect([...referencesIn(parts).uses]).toEqual([
      ['a', 3],
      ['b', 1],
    ]);
  });

  test('hostile text is read in linear time: with more, these would take longer than a test may', () => {
    const hostile = ['{{steps.'.repeat(130_000), `{{steps.${' '.repeat(1_000_000)}`, '{'.repeat(1_000_000)];
    expect(referencesIn(hostile.map(text))).toEqual({ uses: new Map(), invalid: [] });
  });
});
