/* A message comes back, and its sender has no handler of returned messages. */
#include "check.h"

int main(int argc, char **argv)
{
    start(argc, argv);
    OK(AMX_SPMDBarrier());
    if (me == 0)
        OK(AM_Request2(endpoint, ranks - 1, 77, 1, 2));
    UNTIL(0);
    return 1;
}
