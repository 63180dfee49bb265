# A congested hour: others load a link of 10 Gbit/s with packets of 1500 bytes, more and more for
# half an hour and less again for the other.
#
# At a load of r a packet waits r / (1 - r) packets' times for the others, which take 1.2 us each, and
# 1 - r of the bandwidth is left:
#
#     load       0      50 %     80 %     90 %     95 %
#     waiting    0      1.2 us   4.8 us   10.8 us  22.8 us
#     a byte     0.8    1.6      4        8        16 ns
#
# The hours at which it has which load are made up.
#
# Source: the mean wait in an M/M/1 queue (Kleinrock, Queueing Systems 1, 1975, section 3.2).

repeat 3600s
at 0s    latency+0us    gap-per-byte=0.8ns/B
at 600s  latency+1.2us  gap-per-byte=1.6ns/B
at 1080s latency+4.8us  gap-per-byte=4ns/B
at 1440s latency+10.8us gap-per-byte=8ns/B
at 1800s latency+22.8us gap-per-byte=16ns/B
at 2160s latency+10.8us gap-per-byte=8ns/B
at 2520s latency+4.8us  gap-per-byte=4ns/B
at 3000s latency+1.2us  gap-per-byte=1.6ns/B
at 3600s latency+0us    gap-per-byte=0.8ns/B
