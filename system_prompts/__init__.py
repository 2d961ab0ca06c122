"""The packaged system prompts, one text file each; a file of the same name in agent-config/system-prompts replaces one."""
