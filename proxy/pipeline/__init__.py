"""The order of the stages for one stream, and how it ends: read `stream` first."""

from proxy.pipeline.stream import EVENT_STREAM, Pipeline
from proxy.pipeline.values import Asked, Closing, Facts, Head, Setup

__all__ = ["EVENT_STREAM", "Asked", "Closing", "Facts", "Head", "Pipeline", "Setup"]
