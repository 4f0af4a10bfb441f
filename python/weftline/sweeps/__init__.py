"""Sweeps: their file, their points, the store of finished runs, and who runs them (this machine, Ray)."""
