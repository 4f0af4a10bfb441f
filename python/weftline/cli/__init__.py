"""The command line: one module a command or a group of them; each imports what it does only when asked."""
