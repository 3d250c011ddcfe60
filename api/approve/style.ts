import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (...path: string[]) => readFileSync(join(import.meta.dirname, ...path), 'utf8');

/** The mark of the console. */
export const ICON = read('..', '..', 'contracts', 'icon.svg');
/** The style of the page, inline so that the page is one answer; the policy names its hash. */
export const STYLE = read('..', '..', 'contracts', 'colors.css') + read('page.css');

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
