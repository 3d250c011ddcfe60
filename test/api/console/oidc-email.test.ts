import { expect, test } from 'vitest';
import { withUserInfo } from '../../../auth/oidc.js';

const [mine, others] = ['a@example.com', 'b@example.com'];
const who = { iss: 'https://login.example.com', sub: '1' };

test.each([
  { idToken: {}, userInfo: { email: mine, email_verified: true }, expected: [mine, true] },
  { idToken: { email: mine }, userInfo: { email: mine, email_verified: true }, expected: [mine, true] },
  { idToken: { email: mine, email_verified: true }, userInfo: { email: others }, expected: [mine, true] },
  {
    idToken: { email: mine, email_verified: false },
    userInfo: { email: mine, email_verified: true },
    expected: [mine, false],
  },
  { idToken: { email: mine }, userInfo: { email: others, email_verified: true }, expected: [mine, undefined] },
  { idToken: { email_verified: true }, userInfo: { email: others }, expected: [others, undefined] },
])('what counts as the address of $idToken with $userInfo: $expected', ({ idToken, userInfo, expected }) => {
  const { email, email_verified } = withUserInfo({ ...who, ...idToken }, { ...who, ...userInfo });
  expect([email, email_verified]).toEqual(expected);
});
