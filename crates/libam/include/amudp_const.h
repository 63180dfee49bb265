/* The constants of Active Messages 2 under the names of AMUDP, without types and functions. */
#ifndef NETDYNO_AMUDP_CONST_H
#define NETDYNO_AMUDP_CONST_H

#include "am2_const.h"

#ifndef AMUDP
#define AMUDP 1
#endif

#define AMUDP_MAX_SHORT AM_MaxShort()
#define AMUDP_MAX_MEDIUM AM_MaxMedium()
#define AMUDP_MAX_LONG AM_MaxLong()
#define AMUDP_MAX_NUMHANDLERS AM_MaxNumHandlers()
#define AMUDP_MAX_NUMTRANSLATIONS 65536
#define AMUDP_INIT_NUMTRANSLATIONS 256
#define AMUDP_MAX_SEGLENGTH ((uintptr_t)-1)
#define AMUDP_MAX_NETWORKDEPTH 256
/* There is no limit. */
#define AMUDP_MAX_BUNDLES 65536
/* That of this library. */
#define AMUDP_LIBRARY_VERSION 0.1
#define AMUDP_LIBRARY_VERSION_STR "0.1"
#define AMUDP_MAX_SPMDPROCS 65536

#endif
