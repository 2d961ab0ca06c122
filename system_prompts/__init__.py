"""The packaged system prompts, one text file each.

A file of the same name in agent-config/system-prompts replaces one.
"""
