# Data mining: flow sizes of the VL2 cluster, mean 5116.6 packets.
# Source: generator of the pHost authors' simulator (CoNEXT 2015), `datamining`; measured by Greenberg et al. (SIGCOMM 2009).
# Size in packets of 1460 B, then the share of flows up to it; linear in between, rounded to the nearest packet.
unit 1460
1 0
1 0.5
2 0.6
3 0.7
7 0.8
267 0.9
2107 0.95
66667 0.99
666667 1
