"""Numbers out of runs: metrics by name, lines over seeds, intervals, what schemes differ by."""
