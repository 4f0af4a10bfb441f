# AliStorage2019: a block storage cluster of Alibaba, mean 40,869.8 B.
# Source: traffic generator of the HPCC authors' simulator, AliStorage2019.
# Flow size in bytes, then the share of flows up to it in percent; linear in between.
0 0
4000 22.93
8000 69.21
16000 80.61
32000 90.47
64000 93.53
128000 96.77
256000 97.53
2000000 100
