"""What the connections of a process share."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from agent_fleet.access import Access, tls_context

_AUTHORITY = """-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUJyp7v9ZzsbTZwpzHj7GoGGL5548wCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwIBcNMjYxMTI0MTIyNDIwWhgPMjEy
NjEwMzExMjI0MjBaMBkxFzAVBgNVBAMMDnRlc3QgYXV0aG9yaXR5MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEzP5Ucik3SF14hEIvDQ5DwkosGosXqQP7Bgi5tukW
eGxXwD+HGW2oCBuEEgknB4xINZ6OKwn8/A5fxNXC808p0qNTMFEwHQYDVR0OBBYE
FBXgZZM3AB3eOgrAG0iGfuOGePzZMB8GA1UdIwQYMBaAFBXgZZM3AB3eOgrAG0iG
fuOGePzZMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgQpJcD3eu
3XNb+Nd2Fihi/Lfhr1lAtS3KMSHHPsKFPYYCIH0MvAlQGt/Dw7q3qhV7aJOsUnd8
mBGMDh7SNiRU6CpB
-----END CERTIFICATE-----
"""


def test_connections_with_the_same_authorities_share_a_tls_context() -> None:
    without, with_authority = tls_context(None), tls_context(_AUTHORITY)
    assert tls_context(None) is without
    assert tls_context(str(_AUTHORITY)) is with_authority
    assert with_authority is not without
    assert len(with_authority.get_ca_certs()) == len(without.get_ca_certs()) + 1
    assert with_authority.verify_mode == ssl.CERT_REQUIRED


def resolved(environment: dict[str, str] | None = None, **options: Any) -> Any:
    return Access(url="https://platform", token="t", **options).resolved(environment=environment or {})


def test_an_authority_is_text_bytes_or_a_path(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(_AUTHORITY)
    for ca in (_AUTHORITY, _AUTHORITY.encode(), file, str(file)):
        assert resolved(ca=ca).ca == _AUTHORITY
    assert resolved({"FLEET_CA_FILE": str(file)}).ca == _AUTHORITY


def test_an_error_says_which_authority_it_is_about(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"in PEM: the text in `ca`"):
        resolved(ca="-----BEGIN CERTIFICATE-----\nnonsense")
    with pytest.raises(ValueError, match=r"in PEM: the bytes in `ca`"):
        resolved(ca=b"nonsense")
    with pytest.raises(ValueError, match=r"cannot be read: the file /.*/away.pem \(`ca`\).*as text begins with"):
        resolved(ca="away.pem")
    with pytest.raises(ValueError, match=r"the file .*away.pem \(FLEET_CA_FILE\)"):
        resolved({"FLEET_CA_FILE": str(tmp_path / "away.pem")})


def test_an_address_has_no_parameters() -> None:
    with pytest.raises(ValueError, match="has parameters"):
        Access(url="https://platform/fleet?x=1", token="t").resolved(environment={})
