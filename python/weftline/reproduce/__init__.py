"""Published tables and figures run anew: experiments as data, their trials and costs, and their claims."""
