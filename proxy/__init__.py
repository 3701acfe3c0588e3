"""Sluice: a streaming proxy between applications and LLM vendors."""

__version__ = "0.1.0"
