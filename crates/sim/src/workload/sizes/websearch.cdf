# Web search: the flow sizes of a production search cluster, mean 1,711,250 B.
# Source: traffic generator of the HPCC authors' simulator (SIGCOMM 2019), WebSearch; first measured for DCTCP (SIGCOMM 2010).
# Flow size in bytes, then the share of flows up to it in percent; linear in between.
0 0
10000 15
20000 20
30000 30
50000 40
80000 53
200000 60
1000000 70
2000000 80
5000000 90
10000000 97
30000000 100
