import { expect, test } from 'vitest';
import { instanceName } from '../../console/fleet/instance-name.js';
import { argumentsText } from '../../console/inbox/words.js';
import { numberText } from '../../console/parts/texts.js';

test('arguments stand in a row as one line, whatever they are', () => {
  expect(argumentsText({ amount: 700, to: 'ada', lines: [{ id: 1 }] })).toBe('amount: 700, to: ada, lines: [{"id":1}]');
  expect(argumentsText(['a', 1])).toBe('["a",1]');
  expect(argumentsText({ text: 'a'.repeat(1_000) })).toHaveLength(120);
});

test('the name of an instance is shortened only where the platform made it up', () => {
  expect(instanceName('inst_01a225f9-eed9-7000-936f-a669d7d8f084')).toBe('inst_…d8f084');
  expect(instanceName('inst_berlin')).toBe('inst_berlin');
});

test('numbers have their thousands apart', () => {
  for (const text of ['0', '999', '1,000', '1,234,567', '-1,200', '12,345.6789'])
    expect(numberText(Number(text.replaceAll(',', '')))).toBe(text);
});
