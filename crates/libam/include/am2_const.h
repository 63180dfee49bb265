/* The constants of Active Messages 2, without its types and functions. */
#ifndef NETDYNO_AM2_CONST_H
#define NETDYNO_AM2_CONST_H

/* Tags that are no tags. */
#define AM_ALL 1
#define AM_NONE 0

/* Events. */
typedef enum { AM_NOEVENTS, AM_NOTEMPTY, AM_NUMEVENTMASKS } amx_eventmask_t;

/* Modes of bundles. */
typedef enum { AM_SEQ, AM_PAR, AM_NUM_BUNDLE_MODES } amx_bundle_mode_t;

/* Return codes. */
#define AM_OK 0
#define AM_ERR_NOT_INIT 1
#define AM_ERR_BAD_ARG 2
#define AM_ERR_RESOURCE 3
#define AM_ERR_NOT_SENT 4
#define AM_ERR_IN_USE 5

/* Operations of returned messages. */
#define AM_REQUEST_M 1
#define AM_REQUEST_IM 2
#define AM_REQUEST_XFER_M 3
#define AM_REPLY_M 4
#define AM_REPLY_IM 5
#define AM_REPLY_XFER_M 6

/* Limits. */
#define AM_MaxShort() 16
#define AM_MaxMedium() 65000
#define AM_MaxLong() 65000
#define AM_MaxNumHandlers() 256

#endif
