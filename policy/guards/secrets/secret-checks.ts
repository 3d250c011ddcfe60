/** Values in documentation and templates: `<password>`, `${TOKEN}`, `xxxxxxxx`, `your-key-here`, `example`. */
const PLACEHOLDER =
  /^(?:[<[{$%*]|(.)\1+$)|\b(?:your|example|placeholder|changeme|redacted|dummy|sample|insert|todo|none|null|undefined)\b|^(?:pass(?:word)?|secret|token|user|test|admin|string|process|env)$|(?:process\.env|os\.environ|getenv|\.{3})/i;

/** Whether a value is no placeholder. */
export function isNotPlaceholder(value: string): boolean {
  return !PLACEHOLDER.test(value.replaceAll('_', '-'));
}

const ENTROPY_BITS = 3;

/** Whether a value looks made by a machine: letters and digits mixed, and at least 3 bits of entropy in a character. */
export function hasEntropy(value: string): boolean {
  return /\d/.test(value) && /[A-Za-z]/.test(value) && entropyOf(value) >= ENTROPY_BITS;
}

/** Shannon entropy in bits per character. */
function entropyOf(value: string): number {
  const counts = new Map<string, number>();
  for (const char of value) counts.set(char, (counts.get(char) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / value.length) * Math.log2(count / value.length);
  return bits;
}

/** Prefixes of the issuers with their lengths. */
const CARD =
  /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[0689]\d{12}|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|35\d{14,17})$/;

/** Whether digits have the length, a prefix and the check digit (Luhn, ISO/IEC 7812) of a payment card. */
export function isPaymentCard(value: string): boolean {
  const digits = value.replace(/[ -]/g, '');
  if (!CARD.test(digits) || /^(\d)\1*$/.test(digits)) return false;
  let sum = 0;
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place]);
    const doubled = place % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Whether an IBAN has its check digits (ISO 13616: the remainder by 97 is 1). */
export function isBankAccount(value: string): boolean {
  const compact = value.replaceAll(' ', '');
  if (compact.length < 15 || compact.length > 34) return false;
  const turned = compact.slice(4) + compact.slice(0, 4);
  let remainder = 0;
  for (const char of turned) {
    const number = Number.parseInt(char, 36);
    remainder = (remainder * (number > 9 ? 100 : 10) + number) % 97;
  }
  return remainder === 1;
}

/** Whether a number in the form of a US social security number can be one (SSA: areas 000, 666 and 900 up were never given). */
export function isSocialSecurityNumber(value: string): boolean {
  const [area = '', group = '', serial = ''] = value.split('-');
  if (area === '000' || area === '666' || area >= '900' || group === '00' || serial === '0000') return false;
  return value !== '123-45-6789' && value !== '078-05-1120';
}
