/* Active Messages 2 under the names of AMMPI. docs/am2.md describes the functions. */
#ifndef NETDYNO_AMMPI_H
#define NETDYNO_AMMPI_H

#include "am2.h"

#ifndef AMMPI
#define AMMPI 1
#endif

#define AMMPI_Request AMX_Request
#define AMMPI_RequestI AMX_RequestI
#define AMMPI_RequestXfer AMX_RequestXfer
#define AMMPI_Reply AMX_Reply
#define AMMPI_ReplyI AMX_ReplyI
#define AMMPI_ReplyXfer AMX_ReplyXfer
#define AMMPI_RequestVA AMX_RequestVA
#define AMMPI_RequestIVA AMX_RequestIVA
#define AMMPI_RequestXferVA AMX_RequestXferVA
#define AMMPI_ReplyVA AMX_ReplyVA
#define AMMPI_ReplyIVA AMX_ReplyIVA
#define AMMPI_ReplyXferVA AMX_ReplyXferVA
#define AMMPI_Map AMX_Map
#define AMMPI_MapAny AMX_MapAny
#define AMMPI_SetTranslationTag AMX_SetTranslationTag
#define AMMPI_GetSourceId AMX_GetSourceId
#define AMMPI_GetTokenInfo AMX_GetTokenInfo
#define AMMPI_enEqual AMX_enEqual
#define AMMPI_VerboseErrors AMX_VerboseErrors
#define AMMPI_SilentMode AMX_SilentMode
#define AMMPI_FatalErr AMX_FatalErr
#define AMMPI_SetHandlerCallbacks AMX_SetHandlerCallbacks
#define AMMPI_preHandlerCallback_t AMX_preHandlerCallback_t
#define AMMPI_postHandlerCallback_t AMX_postHandlerCallback_t
#define AMMPI_GetEndpointStatistics AMX_GetEndpointStatistics
#define AMMPI_ResetEndpointStatistics AMX_ResetEndpointStatistics
#define AMMPI_AggregateStatistics AMX_AggregateStatistics
#define AMMPI_DumpStatistics AMX_DumpStatistics
#define AMMPI_initial_stats AMX_initial_stats
#define ammpi_node_t amx_node_t
#define ammpi_handler_fn_t amx_handler_fn_t
#define ammpi_category_t amx_category_t
#define ammpi_stats_t amx_stats_t
#define ammpi_eventmask_t amx_eventmask_t
#define ammpi_bundle_mode_t amx_bundle_mode_t
#define ammpi_Short amx_Short
#define ammpi_Medium amx_Medium
#define ammpi_Long amx_Long
#define ammpi_NumCategories amx_NumCategories
#define AMMPI_MAX_SHORT AM_MaxShort()
#define AMMPI_MAX_MEDIUM AM_MaxMedium()
#define AMMPI_MAX_LONG AM_MaxLong()
#define AMMPI_MAX_NUMHANDLERS AM_MaxNumHandlers()
#define AMMPI_MAX_NUMTRANSLATIONS 65536
#define AMMPI_INIT_NUMTRANSLATIONS 256
#define AMMPI_MAX_SEGLENGTH ((uintptr_t)-1)
#define AMMPI_MAX_NETWORKDEPTH 256
/* There is no limit. */
#define AMMPI_MAX_BUNDLES 65536
/* That of this library. */
#define AMMPI_LIBRARY_VERSION 0.1
#define AMMPI_LIBRARY_VERSION_STR "0.1"

/* Does nothing: all endpoints reach each other, and their allocation is no collective call. The communicator of MPI is not
 * read. */
AMX_BEGIN_C
extern int AMMPI_SetEndpointCommunicator(void *communicator);
AMX_END_C

#endif
