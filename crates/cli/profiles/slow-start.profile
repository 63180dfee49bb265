# Slow start: a TCP connection that begins with ten segments of 1448 bytes a round trip and doubles
# them with each, on a link of 10 Gbit/s with a round trip of 1 ms. After 200 ms without a message it
# begins again.
#
# In the n-th millisecond 14.48 MB/s * 2^n are sent. A message takes the rate of the moment at which
# it departs to its end: one that is longer than a round trip is slower here than it would be.
#
# Source: RFC 6928 (the initial window), RFC 5681 section 3.1 (slow start) and 4.1 (after idle);
# 200 ms is the least retransmission timeout of Linux, which its slow start after idle waits for.

idle 200ms
at 0ms gap-per-byte=14.48MB/s
at 1ms gap-per-byte=14.48MB/s
at 1ms gap-per-byte=28.96MB/s
at 2ms gap-per-byte=28.96MB/s
at 2ms gap-per-byte=57.92MB/s
at 3ms gap-per-byte=57.92MB/s
at 3ms gap-per-byte=115.84MB/s
at 4ms gap-per-byte=115.84MB/s
at 4ms gap-per-byte=231.68MB/s
at 5ms gap-per-byte=231.68MB/s
at 5ms gap-per-byte=463.36MB/s
at 6ms gap-per-byte=463.36MB/s
at 6ms gap-per-byte=926.72MB/s
at 7ms gap-per-byte=926.72MB/s
at 7ms gap-per-byte=1.25GB/s
