"""What the connections of a process share."""

import ssl

from agent_fleet.access import tls_context

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
