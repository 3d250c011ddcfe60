"""Streams of the platform: how they are read, followed and resumed."""
