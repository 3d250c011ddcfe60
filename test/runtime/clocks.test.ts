import { expect, test } from 'vitest';
import { DEFAULT_CLOCKS } from '../../runtime/clocks.js';
import { readConfig } from '../../runtime/config.js';

test('clocks that are not given have their defaults', () => {
  expect(readConfig({}).FLEET_CLOCKS).toEqual(DEFAULT_CLOCKS);
  expect(readConfig({ FLEET_CLOCKS: '{"deadNodeMs":3000}' }).FLEET_CLOCKS).toEqual({
    ...DEFAULT_CLOCKS,
    deadNodeMs: 3_000,
  });
});

test.each(['nonsense', '[]', '{"deadNodeMs":0}', '{"deadNodeMs":"3000"}', '{"noSuchClockMs":1}'])(
  'FLEET_CLOCKS=%s is refused at the start',
  (text) => {
    expect(() => readConfig({ FLEET_CLOCKS: text })).toThrow('FLEET_CLOCKS');
  },
);
