"""The lab: a scenario on the real packets of one Linux machine, in namespaces that it makes and removes.

The road of a scenario: `plan` turns it into hosts, links, routes and flows, or says why it cannot be run;
`network` builds that from namespaces, `ports` sets up each interface; `port_process` (links) and `agent`
(flows) are the processes that run inside; `runs` starts, waits and writes the folder; `doctor` finds what is
possible here; `agreement` compares with a simulated run.
"""
