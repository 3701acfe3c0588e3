"""What Anthropic's models take, whichever API they are asked through: its own, or a cloud's."""
