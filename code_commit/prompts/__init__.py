"""The prompts: how they are laid out, what they tell of builds and earlier attempts, and which one is next."""
