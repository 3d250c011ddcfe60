import { createHash } from 'node:crypto';

/** The style of the page, inline so that the page is one answer; the policy names its hash. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --yes: #1a7f37; --no: #b3261e; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; padding: 1rem; }
main { max-width: 40rem; margin: 0 auto; }
h1 { font-size: 1.35rem; line-height: 1.25; margin: .5rem 0; overflow-wrap: anywhere; }
p, dd, label { overflow-wrap: anywhere; }
h2, h3 { font-size: 1rem; margin: 1rem 0 .25rem; } h3 { font-size: .9rem; opacity: .85; }
.prompt, .rows, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.content { background: var(--soft); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; }
.content > :first-child { margin-top: 0; } .content > :last-child { margin-bottom: 0; }
pre { margin: .3rem 0; font-size: .95em; }
dl { margin: 0; } dt { opacity: .75; } dd { margin: 0; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 1rem 0; }
.rows dd { margin: 0 0 .4rem; } .rows dd > dl, .rows li > dl, ol { border-left: 2px solid var(--line); margin: .1rem 0 .1rem .3rem; padding-left: .8rem; }
ol { padding-left: 2rem; } i { opacity: .75; }
@media (max-width: 30rem) { .facts { grid-template-columns: 1fr; gap: 0; } .facts dd { margin-bottom: .5rem; } }
label { display: block; margin: .8rem 0; font-weight: 600; }
label small { display: block; font-weight: 400; opacity: .8; }
label .wrong { color: var(--no); opacity: 1; font-weight: 600; } [aria-invalid] { border-color: var(--no); }
input, select, textarea { font: inherit; font-weight: 400; width: 100%; padding: .5rem; margin-top: .25rem; border: 1px solid var(--line); border-radius: .4rem; }
input[type=checkbox] { width: 1.25rem; height: 1.25rem; margin: 0 .5rem 0 0; vertical-align: middle; }
.buttons { display: flex; gap: .75rem; margin: 1.25rem 0; flex-wrap: wrap; }
button { font: inherit; font-weight: 600; color: #fff; border: 0; border-radius: .4rem; padding: .7rem 1.4rem; min-height: 2.75rem; flex: 1; cursor: pointer; }
button.yes { background: var(--yes); } button.no { background: var(--no); }
.problem { border-left: .3rem solid var(--no); padding: .4rem .8rem; background: var(--soft); }
footer { font-size: .85rem; opacity: .75; margin-top: 2rem; }
`;

/**
 * The page needs no script; with this one times are in the reader's zone. Of a point in time that is entered the server gets UTC.
 */
export const SCRIPT = `
const wall = (date) => new Date(date - date.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
const format = { weekday: 'short', year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', timeZoneName: 'short' };
for (const time of document.querySelectorAll('time')) time.textContent = new Date(time.dateTime).toLocaleString(undefined, format);
for (const zone of document.querySelectorAll('.zone')) zone.textContent = 'In your time zone, ' + Intl.DateTimeFormat().resolvedOptions().timeZone + '.';
for (const input of document.querySelectorAll('input[type=datetime-local]')) {
  if (input.value) input.value = wall(new Date(input.value + 'Z'));
  input.form.addEventListener('formdata', ({ formData }) => {
    if (input.value) formData.set(input.name, new Date(input.value).toISOString());
  });
}
`;

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** Headers of every answer of the page: nothing is loaded, framed, cached or passed on, and no other script runs. */
export const PAGE_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src ${hashOf(STYLE)}; script-src ${hashOf(SCRIPT)}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex',
};
