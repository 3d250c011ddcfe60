import axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import { createSignInLink } from '../../../auth/console-sessions.js';
import type { Scope } from '../../../contracts/primitives.js';
import { answerMessage, COMPLETED } from '../../api/moving.js';
import type { ServedApi } from '../../api/served-api.js';
import { startChromium } from '../../setup/chromium.js';

/** WCAG 2.2 AA, with what it includes. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
const THEMES = ['light', 'dark'] as const;
const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

/** People with browsers at the console of an API. */
export async function consoleBrowser(api: ServedApi) {
  const browser = await startChromium();
  /** A browser of somebody who is not signed in. `problems`: what the page reports to its console. */
  const newPage = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({ viewport: DESK, ...options });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
    page.on('pageerror', (error) => problems.push(String(error)));
    return { context, page, problems };
  };
  /** Signs in by a link of a new credential. */
  const signedIn = async (scopes: Scope[], options: BrowserContextOptions = {}) => {
    const { client_id, client_secret } = await api.credentialOf(api.tenantId, scopes);
    const { context, page, problems } = await newPage(options);
    const link = await createSignInLink(api.db, api.tenantId, client_id);
    await page.goto(`${api.baseUrl}/console/sign-in#${link}`);
    await page.waitForURL('**/console/inbox*');
    return { page, context, client_id, client_secret, problems, link };
  };
  return {
    newPage,
    signedIn,
    /** The agent of a message answers with a text. */
    answer: (id: string, text: string) =>
      answerMessage(api, id, { ...COMPLETED, artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text }] }] }),
    /** Does this in either theme, at a desk and on a phone. `check` opens a screen, on which nothing is wrong. */
    onEachScreen: async (
      work: (page: Page, check: (path: string, shown: string) => Promise<void>) => Promise<void>,
    ) => {
      for (const colorScheme of THEMES)
        for (const viewport of [DESK, PHONE]) {
          const { page } = await signedIn(['full'], { viewport, colorScheme, reducedMotion: 'reduce' });
          await work(page, async (path, shown) => {
            await page.goto(`${api.baseUrl}/console/${path}`);
            await page.getByText(shown).first().waitFor();
            await expectFits(page);
          });
          await page.context().close();
        }
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

/** Nothing that axe finds, and nothing beyond the right edge. */
export async function expectFits(page: Page): Promise<void> {
  expect(await violations(page)).toEqual([]);
  await expectNoSideways(page);
}

/** Nothing that axe finds in either theme. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    expect(await violations(page)).toEqual([]);
  }
}

/** The same, nor anything beyond the edge of a phone, on which it is from then on. */
export async function expectGoodOnPhone(page: Page): Promise<void> {
  await expectAccessible(page);
  await page.setViewportSize(PHONE);
  await expectNoSideways(page);
}
