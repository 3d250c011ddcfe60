"""The keys with which a hosted agent checks the platform's tokens."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import httpx
import jwt
import pytest
from test_hosted import JWK, TRUST, _AsyncClient, bearer

from agent_fleet import SILENT_LOG
from agent_fleet.hosted import platform_tokens
from agent_fleet.hosted.platform_tokens import PlatformTokens


class Keys:
    """The platform's answers to requests for its keys, and a clock."""

    def __init__(self) -> None:
        self.answer: Any = {"keys": [JWK]}
        self.requests = 0
        self.now = 1_000.0

    async def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        await asyncio.sleep(0)
        return httpx.Response(503) if self.answer is None else httpx.Response(200, json=self.answer)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Keys:
    keys = Keys()
    monkeypatch.setattr(httpx, "AsyncClient", partial(_AsyncClient, transport=httpx.MockTransport(keys.handle)))
    monkeypatch.setattr(platform_tokens, "time", SimpleNamespace(monotonic=lambda: keys.now))
    return keys


def verdicts(tokens: PlatformTokens, count: int = 1) -> set[str]:
    async def verify() -> set[str]:
        return set(await asyncio.gather(*(tokens.verify(bearer()["authorization"]) for _ in range(count))))

    return asyncio.run(verify())


def make_tokens() -> PlatformTokens:
    return PlatformTokens(**TRUST, log=SILENT_LOG)


def test_a_failed_fetch_is_shared_and_not_repeated_at_once(keys: Keys) -> None:
    keys.answer = None
    tokens = make_tokens()
    assert (verdicts(tokens, 5), keys.requests) == ({"not_ready"}, 1)
    keys.now += 0.5
    assert (verdicts(tokens), keys.requests) == ({"not_ready"}, 1)
    keys.now += 1
    keys.answer = {"keys": [JWK]}
    assert (verdicts(tokens), keys.requests) == ({"trusted"}, 2)


def test_a_withdrawn_key_is_trusted_no_longer_than_ten_minutes(keys: Keys) -> None:
    tokens = make_tokens()
    assert verdicts(tokens) == {"trusted"}
    keys.answer = {"keys": [{**JWK, "kid": "k2"}]}
    keys.now += 599
    assert (verdicts(tokens), keys.requests) == ({"trusted"}, 1)
    keys.now += 2
    assert (verdicts(tokens), keys.requests) == ({"refused"}, 2)


def test_old_keys_stay_for_an_hour_while_there_are_no_others(keys: Keys) -> None:
    tokens = make_tokens()
    assert verdicts(tokens) == {"trusted"}
    keys.answer = None
    keys.now += 3_599
    assert (verdicts(tokens), keys.requests) == ({"trusted"}, 2)
    keys.now += 2
    assert (verdicts(tokens), keys.requests) == ({"not_ready"}, 3)


@pytest.mark.parametrize("answer", [[], "x", {"keys": {}}, {"keys": ["x"]}, {"keys": [{"kty": 1}]}])
def test_keys_that_are_none_are_unavailable(keys: Keys, answer: Any) -> None:
    keys.answer = answer
    assert verdicts(make_tokens()) == {"not_ready"}


def test_whatever_the_library_says_of_a_token_refuses_it(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(*_: Any, **__: Any) -> None:
        raise jwt.InvalidKeyError("not a key for EdDSA")

    monkeypatch.setattr(jwt, "decode", decode)
    assert verdicts(make_tokens()) == {"refused"}
