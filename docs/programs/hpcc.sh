#!/bin/sh
# One run of HPCC (Debian's package `hpcc`) on two ranks. It adds its figures to the end of a file:
# a new one is begun, and shown. The input is Debian's example for two ranks.
sed -e 's/^2  *Ps/1 Ps/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
rm -f hpccoutf.txt
mpirun.openmpi -n 2 --bind-to core hpcc && grep = hpccoutf.txt
