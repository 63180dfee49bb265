/* Active Messages 2 under the names of AMUDP. docs/am2.md describes the functions. */
#ifndef NETDYNO_AMUDP_H
#define NETDYNO_AMUDP_H

/* Programs take the functions of sockets from here. */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "am2.h"
#include "amudp_const.h"

#define AMUDP_Request AMX_Request
#define AMUDP_RequestI AMX_RequestI
#define AMUDP_RequestXfer AMX_RequestXfer
#define AMUDP_Reply AMX_Reply
#define AMUDP_ReplyI AMX_ReplyI
#define AMUDP_ReplyXfer AMX_ReplyXfer
#define AMUDP_RequestVA AMX_RequestVA
#define AMUDP_RequestIVA AMX_RequestIVA
#define AMUDP_RequestXferVA AMX_RequestXferVA
#define AMUDP_ReplyVA AMX_ReplyVA
#define AMUDP_ReplyIVA AMX_ReplyIVA
#define AMUDP_ReplyXferVA AMX_ReplyXferVA
#define AMUDP_Map AMX_Map
#define AMUDP_MapAny AMX_MapAny
#define AMUDP_SetTranslationTag AMX_SetTranslationTag
#define AMUDP_GetSourceId AMX_GetSourceId
#define AMUDP_GetTokenInfo AMX_GetTokenInfo
#define AMUDP_enEqual AMX_enEqual
#define AMUDP_VerboseErrors AMX_VerboseErrors
#define AMUDP_SilentMode AMX_SilentMode
#define AMUDP_FatalErr AMX_FatalErr
#define AMUDP_SetHandlerCallbacks AMX_SetHandlerCallbacks
#define AMUDP_preHandlerCallback_t AMX_preHandlerCallback_t
#define AMUDP_postHandlerCallback_t AMX_postHandlerCallback_t
#define AMUDP_GetEndpointStatistics AMX_GetEndpointStatistics
#define AMUDP_ResetEndpointStatistics AMX_ResetEndpointStatistics
#define AMUDP_AggregateStatistics AMX_AggregateStatistics
#define AMUDP_DumpStatistics AMX_DumpStatistics
#define AMUDP_initial_stats AMX_initial_stats
#define amudp_node_t amx_node_t
#define amudp_handler_fn_t amx_handler_fn_t
#define amudp_category_t amx_category_t
#define amudp_stats_t amx_stats_t
#define amudp_eventmask_t amx_eventmask_t
#define amudp_bundle_mode_t amx_bundle_mode_t
#define amudp_Short amx_Short
#define amudp_Medium amx_Medium
#define amudp_Long amx_Long
#define amudp_NumCategories amx_NumCategories

/* Sets the address (in network byte order) at which endpoints listen. Call it before the first one is allocated. */
AMX_BEGIN_C
extern int AMUDP_SetUDPInterface(uint32_t address);
/* The bandwidth that the program expects, in KB/s. The library measures it by itself and does not read this. */
extern uint32_t AMUDP_ExpectedBandwidth;
/* Whether a wait shall leave the processor to others. Each wait does, and does not read this. */
extern int AMUDP_PoliteSync;
AMX_END_C

#endif
