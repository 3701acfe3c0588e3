"""Canonical values: vendor-free, frozen, with nothing but their own arithmetic."""
