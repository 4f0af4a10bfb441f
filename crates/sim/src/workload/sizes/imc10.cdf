# IMC10: flow sizes in data centers, mean 133.806 packets.
# Source: generator of the pHost authors' simulator (CoNEXT 2015), `aditya`; measured by Benson et al. (IMC 2010).
# Size in packets of 1460 B, then the share of flows up to it; linear in between, rounded to the nearest packet.
unit 1460
1 0
1 0.5
2 0.6
3 0.7
5 0.75
7 0.8
40 0.8125
72 0.825
137 0.85
267 0.9
1187 0.95
2107 1
