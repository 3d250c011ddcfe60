import { execFileSync } from 'node:child_process';
import axe from 'axe-core';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { createSignInLink } from '../../../auth/console-sessions.js';
import type { Scope } from '../../../contracts/primitives.js';
import type { ServedApi } from '../../api/served-api.js';
import { cleanUp } from '../../setup/clean-up.js';

/** WCAG 2.2 AA, with what it includes. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** People with browsers at the console of an API. */
export async function consoleBrowser(api: ServedApi) {
  const browser = await chromium.launch({
    executablePath: execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim(),
    args: ['--no-sandbox'],
  });
  cleanUp(() => browser.close());
  /** A browser of somebody who is not signed in. `problems`: what the page reports to its console. */
  const newPage = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
    return { context, page, problems };
  };
  return {
    newPage,
    /** Signs in by a link of a new credential. */
    signedIn: async (scopes: Scope[], options: BrowserContextOptions = {}) => {
      const { client_id, client_secret } = await api.credentialOf(api.tenantId, scopes);
      const { context, page, problems } = await newPage(options);
      const link = await createSignInLink(api.db, api.tenantId, client_id);
      await page.goto(`${api.baseUrl}/console/sign-in#${link}`);
      await page.waitForURL('**/console/inbox*');
      return { page, context, client_id, client_secret, problems, link };
    },
  };
}

/** What axe finds on the page as it is, in a few words. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ' ' + target + ' ' + failureSummary)))`,
  )) as string[];
  return found;
}

/** Nothing is beyond the right edge. */
export async function expectNoSideways(page: Page): Promise<void> {
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
}
