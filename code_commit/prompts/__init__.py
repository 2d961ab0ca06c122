"""The prompts: how they are laid out, what they tell of earlier attempts, and which one is next."""
