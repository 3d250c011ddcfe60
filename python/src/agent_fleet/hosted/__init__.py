"""Agents that the platform posts to, as ASGI apps (`agent-fleet[hosted]`)."""

from .hosted_app import HostedAgentApp
from .platform_auth import PlatformAuth
from .platform_tokens import PlatformTokens

__all__ = ["HostedAgentApp", "PlatformAuth", "PlatformTokens"]
