/** The console in Chromium, with the times that the page itself sees. */
import { execFileSync } from 'node:child_process';
import { chromium } from 'playwright-core';

/** Set up in each page: `window.measure` waits for what is shown, until it is painted. */
function measureInPage() {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))));
  /** When a selector was painted for the first time since the page was asked for. */
  const shown = async (selector) => {
    await new Promise((done) => {
      const look = () => document.querySelector(selector) && done();
      const observer = new MutationObserver(look);
      observer.observe(document, { subtree: true, childList: true });
      look();
    });
    return painted();
  };
  /** How long it takes from an address to its list. */
  const filtered = async (search) => {
    const status = () => document.querySelector('.filters [role=status]').textContent;
    const from = performance.now();
    await new Promise((done) => {
      let isLoading = false;
      const observer = new MutationObserver(() => {
        if (status().includes('loading')) isLoading = true;
        else if (isLoading && document.querySelector('.message-row')) {
          observer.disconnect();
          done();
        }
      });
      observer.observe(document.body, { subtree: true, childList: true, characterData: true });
      history.pushState({}, '', `/console/messages?${search}`);
    });
    return (await painted()) - from;
  };
  /** Scrolls down by so much a frame. @returns the time between frames, and how many rows have been loaded */
  const scrolled = async (pixels, ms) => {
    const scroller = document.querySelector('.scroller');
    const frames = [];
    let last = await new Promise(requestAnimationFrame);
    const until = last + ms;
    while (last < until) {
      scroller.scrollTop += pixels;
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - last);
      last = now;
    }
    const rows = Math.round(scroller.querySelector('ul').offsetHeight / scroller.querySelector('li').offsetHeight);
    return { frames, rows };
  };
  window.measure = { shown, filtered, scrolled };
}

/** Chromium, closed with the harness. @returns opens a page of somebody who is signed in, with nothing in its cache */
export async function openBrowser(harness) {
  const executablePath = execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  harness.onStop(() => browser.close());
  /** @param throttling by how much the processor is slowed */
  return async ({ dev }, throttling = 1) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: dev.base_url });
    const { client_id, client_secret } = dev;
    await context.request.post('/console/sign_in', { data: { client_id, client_secret } });
    await context.addInitScript(measureInPage);
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Emulation.setCPUThrottlingRate', { rate: throttling });
    return page;
  };
}
