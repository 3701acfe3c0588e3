"""Which packages there are. Everything else about the distribution stands in pyproject.toml."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[*find_namespace_packages(include=["proxy", "proxy.*"]), "proxy._rules", "proxy._recordings"],
    # Rules and their evidence stay at the top of the checkout, where operators look for them, and are shipped inside
    # the package.
    package_dir={"proxy._rules": "rules", "proxy._recordings": "recordings"},
    package_data={
        "proxy": ["py.typed"],
        "proxy._rules": ["*.yaml", "verdicts.lock"],
        "proxy._recordings": ["**/*.jsonl"],
        "*": ["*.mako", "*.ini"],
    },
)
