"""Published tables and figures, run again: experiments as data, their trials and costs, and their claims."""
