import { setTimeout as delay } from 'node:timers/promises';
import { ArithmeticError, evaluate } from './arithmetic.js';
import { type ConciergeTool, textArgument } from './tool.js';

const WAIT_SECONDS_MAX = 3_600;

export const calculate: ConciergeTool = {
  name: 'calculate',
  description: 'Computes an arithmetic expression such as 12 * (3 + 4) or sqrt(2) ^ 3.',
  parameters: { type: 'object', properties: { expression: { type: 'string' } }, required: ['expression'] },
  run: async (args) => {
    const expression = textArgument(args, 'expression').trim();
    try {
      return `${expression} = ${Number(evaluate(expression).toPrecision(15))}`;
    } catch (error) {
      if (error instanceof ArithmeticError) return `I cannot compute that: ${error.message}.`;
      throw error;
    }
  },
};

/** Waits and reports the remaining time every second: a long task to cancel, to interrupt, or to watch in the Temporal UI. */
export const wait: ConciergeTool = {
  name: 'wait',
  description: 'Waits for a number of seconds, up to an hour.',
  parameters: { type: 'object', properties: { seconds: { type: 'number' } }, required: ['seconds'] },
  run: async (args, task) => {
    const seconds = Math.min(WAIT_SECONDS_MAX, Math.max(0, Number(args.seconds) || 0));
    const end = Date.now() + seconds * 1000;
    for (let left = end - Date.now(); left > 0; left = end - Date.now()) {
      await task.status(`${Math.ceil(left / 1000)} s left`);
      await delay(Math.min(1_000, left), undefined, { signal: task.signal });
    }
    return `I waited ${seconds} seconds.`;
  },
};
