import type { SecretKind } from '../../../contracts/api/policies/guards.js';
import { hasEntropy, isBankAccount, isNotPlaceholder, isPaymentCard, isSocialSecurityNumber } from './secret-checks.js';

/**
 * What one kind of secret looks like. A pattern has bounded repetitions and begins at a literal or at a boundary, so that a scan takes linear
 * time; a match has at most `REACH` characters before its last word, and `SPAN` in all, which the inspection of streams relies on.
 */
export interface SecretRule {
  rule: string;
  kind: SecretKind;
  /** Shown in the reason. */
  what: string;
  /** One of these is in every match; none: no cheap test. */
  literals: readonly string[];
  pattern: RegExp;
  /** Whether a match is what it looks like. @param value the first group, or the whole match */
  check?: (value: string) => boolean;
}

/** Characters of the longest match. */
export const SPAN = 640;
/** Characters of a match before the last space in it. */
export const REACH = 96;

const credential = (
  rule: string,
  what: string,
  literals: readonly string[],
  pattern: RegExp,
  check?: SecretRule['check'],
): SecretRule => ({ rule, kind: 'credentials', what, literals, pattern, ...(check && { check }) });

export const SECRET_RULES: readonly SecretRule[] = [
  credential(
    'private_key',
    'a private key',
    ['PRIVATE KEY'],
    /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g,
  ),
  credential(
    'aws_access_key',
    'an AWS access key',
    ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    /(?<![A-Za-z0-9])A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])/g,
  ),
  credential(
    'github_token',
    'a GitHub token',
    ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'],
    /(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22})/g,
  ),
  credential(
    'gitlab_token',
    'a GitLab token',
    ['glpat-', 'glrt-', 'gldt-'],
    /(?<![A-Za-z0-9])gl(?:pat|rt|dt)-[A-Za-z0-9_-]{20}/g,
  ),
  credential(
    'slack_token',
    'a Slack token',
    ['xox', 'xapp-'],
    /(?<![A-Za-z0-9])(?:xox[abeoprs]-|xapp-\d-)[A-Za-z0-9-]{10}/g,
  ),
  credential(
    'slack_webhook',
    'a Slack webhook',
    ['hooks.slack.com/'],
    /hooks\.slack\.com\/(?:services|workflows)\/[A-Za-z0-9]{8,16}\/[A-Za-z0-9]{8,16}\/[A-Za-z0-9]{16}/g,
  ),
  credential(
    'stripe_key',
    'a Stripe key',
    ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_'],
    /(?<![A-Za-z0-9])(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16}|whsec_[A-Za-z0-9+/]{24})/g,
  ),
  credential(
    'google_key',
    'a Google key',
    ['AIza', 'GOCSPX-', 'ya29.'],
    /(?<![A-Za-z0-9])(?:AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{20}|ya29\.[A-Za-z0-9_-]{30})/g,
  ),
  credential(
    'model_provider_key',
    'a key of a model provider',
    ['sk-', 'hf_', 'gsk_', 'xai-'],
    /(?<![A-Za-z0-9_-])(?:sk-(?:ant-|proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,48}|hf_[A-Za-z0-9]{30}|gsk_[A-Za-z0-9]{40}|xai-[A-Za-z0-9]{40})/g,
    hasEntropy,
  ),
  credential(
    'package_token',
    'a token of a package registry',
    ['npm_', 'pypi-', 'rubygems_'],
    /(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40}|rubygems_[a-f0-9]{48})/g,
  ),
  credential(
    'cloud_token',
    'a token of a cloud provider',
    ['dop_v1_', 'doo_v1_', 'shpat_', 'SG.', 'dapi', 'AccountKey=', 'hvs.', 'sntrys_'],
    /(?<![A-Za-z0-9])(?:do[op]_v1_[a-f0-9]{64}|shpat_[a-fA-F0-9]{32}|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|dapi[a-f0-9]{32}|AccountKey=[A-Za-z0-9+/]{80}|hvs\.[A-Za-z0-9_-]{24}|sntrys_[A-Za-z0-9_+/=-]{40})/g,
  ),
  credential('jwt', 'a JSON Web Token', ['eyJ'], /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,512}\.eyJ[A-Za-z0-9_-]{10}/g),
  credential(
    'authorization',
    'an authorization header',
    ['uthorization', 'UTHORIZATION'],
    /authorization["']?\s{0,3}[:=]\s{0,3}["']?(?:bearer|basic|token)\s{1,3}([A-Za-z0-9._~+/-]{16,200})/gi,
    isNotPlaceholder,
  ),
  credential(
    'url_password',
    'a password in a URL',
    ['://'],
    /(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}:\/\/[^\s/:@?#]{0,100}:([^\s/@?#]{3,200})@/g,
    isNotPlaceholder,
  ),
  credential(
    'assigned_secret',
    'a password or key that is assigned',
    ['assw', 'ASSW', 'ecret', 'ECRET', 'oken', 'OKEN', 'api', 'API', 'Api', 'pwd', 'PWD'],
    /(?<![A-Za-z])(?:api[_-]?key|(?:client|aws|app|shared)?[_-]?secret(?:[_-]?(?:access[_-]?)?key)?|(?:access|auth|refresh)[_-]?token|password|passwd|pwd)["']?\s{0,3}(?:=>|:=|[:=])\s{0,3}["']?([^\s"',;]{8,128})/gi,
    (value) => isNotPlaceholder(value) && hasEntropy(value),
  ),
  {
    rule: 'payment_card',
    kind: 'payment_cards',
    what: 'a payment card number',
    literals: [],
    pattern: /(?<![\w.-])[2-6]\d{3}(?:[ -]?\d){8,15}(?![\w-]|\.\d)/g,
    check: isPaymentCard,
  },
  {
    rule: 'iban',
    kind: 'bank_accounts',
    what: 'a bank account number',
    literals: [],
    pattern: /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/g,
    check: isBankAccount,
  },
  {
    rule: 'us_ssn',
    kind: 'national_ids',
    what: 'a social security number',
    literals: ['-'],
    pattern: /(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])/g,
    check: isSocialSecurityNumber,
  },
  {
    rule: 'email_address',
    kind: 'email_addresses',
    what: 'an email address',
    literals: ['@'],
    pattern: /(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.){1,5}[A-Za-z]{2,24}(?![A-Za-z0-9])/g,
  },
  {
    rule: 'phone_number',
    kind: 'phone_numbers',
    what: 'a phone number',
    literals: ['+', '('],
    pattern: /(?<![\w+])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?|\(\d{3}\) ?)\d{2,4}(?:[ .-]?\d{2,4}){1,4}(?![\w-])/g,
  },
];
