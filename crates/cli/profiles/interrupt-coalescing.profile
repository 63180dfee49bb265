# Interrupt coalescing: a network card that interrupts its host every 50 us at most. What arrives
# between two interrupts waits for the next one, and all of it is handed over together.
#
# Each message is looked up at the time at which it arrives. Of the latency is left then what is left
# of the period, so that all of a period are due at its end.
#
# Source: Prasad, Jain and Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM
# 2004. Cards have it as rx-usecs (ethtool -c); 50 us is a common order of magnitude, not a
# measurement: change all three figures to that of your card.

repeat 50us
at 0us  latency+50us
at 50us latency+0us
