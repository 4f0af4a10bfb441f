"""Packets and flow records of real networks: captures read, flows taken out of them, traces made of these.

A capture (pcap, pcapng) gives packets, NetFlow and IPFIX tables give records; both become flows between
addresses, and with a map of addresses to hosts the rows of a trace, which ``[[workload]] kind = "trace"``
replays.
"""
