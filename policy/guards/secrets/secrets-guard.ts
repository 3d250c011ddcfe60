import type { SecretKind } from '../../../contracts/api/policies/guards.js';
import { visibleText } from '../../places/normalise.js';
import type { Find, GuardedText } from '../guarded-content.js';
import { isNotPlaceholder } from './secret-checks.js';
import { SECRET_RULES, type SecretRule } from './secret-rules.js';

/** Members that hold a secret, whatever it looks like. */
const SECRET_KEY =
  /(?:^|[._-])(?:password|passwd|passphrase|client_?secret|secret_?(?:access_?)?key|api_?key|private_?key|access_?token|refresh_?token)$/i;
const SECRET_CHARS = 8;

/** The rules of these kinds. */
export function secretRules(kinds: readonly SecretKind[]): readonly SecretRule[] {
  return SECRET_RULES.filter(({ kind }) => kinds.includes(kind));
}

/** Finds secrets and personal data in texts: one finding for each rule and place. */
export function findSecrets(texts: readonly GuardedText[], rules: readonly SecretRule[]): Find[] {
  const found: Find[] = [];
  const named = rules.some(({ kind }) => kind === 'credentials');
  for (const { path, text } of texts) {
    for (const { rule, what } of secretsIn(visibleText(text), rules))
      found.push({ rule, path, reason: `The content holds ${what}.` });
    if (named && text.length >= SECRET_CHARS && SECRET_KEY.test(path) && isNotPlaceholder(text))
      found.push({ rule: 'named_secret', path, reason: 'The content holds a value under the name of a secret.' });
  }
  return found;
}

/**
 * The rules that match a text.
 * @param begins a match that begins before this index does not count
 * @param ends a match that ends after this index does not count: what follows may change it
 */
export function* secretsIn(
  visible: string,
  rules: readonly SecretRule[],
  begins = 0,
  ends = visible.length,
): Generator<SecretRule> {
  for (const rule of rules) {
    const { literals, pattern, check } = rule;
    if (literals.length > 0 && !literals.some((literal) => visible.includes(literal))) continue;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(visible); match; match = pattern.exec(visible)) {
      const counts = match.index >= begins && pattern.lastIndex <= ends;
      if (counts && (!check || check(match[1] ?? match[0]))) {
        yield rule;
        break;
      }
      pattern.lastIndex = match.index + 1; // a card number may begin inside other digits
    }
  }
}
