"""Which packages there are. Everything else about the distribution stands in pyproject.toml."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[
        *find_namespace_packages(include=["proxy", "proxy.*"]),
        *("proxy._rules", "proxy._recordings", "proxy._prices"),
    ],
    # Rules, their evidence and prices stay at the top of the checkout, where operators look for them, and are shipped
    # inside the package.
    package_dir={"proxy._rules": "rules", "proxy._recordings": "recordings", "proxy._prices": "prices"},
    package_data={
        "proxy": ["py.typed"],
        "proxy._rules": ["*.yaml", "verdicts.lock"],
        "proxy._recordings": ["**/*.jsonl"],
        "proxy._prices": ["*.yaml"],
        "proxy.dialects.toon": ["*.json"],
        "proxy.toon": ["*.mjs"],
        "proxy.toon.corpus": ["*.txt"],
        "*": ["*.mako", "*.ini"],
    },
)
