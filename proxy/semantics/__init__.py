"""What an answer means: rules, the five classes, tool calls in order, fences, and whether the answer is complete."""
