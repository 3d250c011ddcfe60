"""Agents that the platform posts to, as ASGI apps (`agent-fleet[hosted]`)."""

from .platform_auth import PlatformAuth
from .platform_tokens import PlatformTokens

__all__ = ["PlatformAuth", "PlatformTokens"]
