"""The models: what an id sees, where it stands, and decoders over the weights of a Hugging Face folder (docs/toon.md).

Read `step` first (what a decoder is asked), then `plan` (what becomes of a request), `masks` and `llama`. Needs torch;
transformers reads configurations and weights, and takes no part in decoding.
"""
