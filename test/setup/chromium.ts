import { execFileSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';
import { cleanUp } from './clean-up.js';

/** The Chromium of this machine, closed after the test or the file. */
export async function startChromium(): Promise<Browser> {
  const executablePath = execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  cleanUp(() => browser.close());
  return browser;
}
