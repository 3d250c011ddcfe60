"""The operations of the API, generated from its OpenAPI document."""
