-- Transactions of tenants look which secret key is in use before they seal a value (hold_secret_key). The facts tell its check value, never
-- the key.
GRANT SELECT ON platform_facts TO fleet_app;
