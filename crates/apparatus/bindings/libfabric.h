/* The headers of libfabric, and its constants with the types that the hook needs. */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#define CONSTANT(type, name) static const type name = FI_##name;
/* Flags of operations and completions. */
#define FLAG(name) CONSTANT(uint64_t, name)

FLAG(MSG) FLAG(RMA) FLAG(TAGGED) FLAG(ATOMIC) FLAG(READ) FLAG(WRITE) FLAG(RECV) FLAG(TRANSMIT)
FLAG(REMOTE_READ) FLAG(REMOTE_WRITE) FLAG(MULTI_RECV) FLAG(REMOTE_CQ_DATA) FLAG(PEEK) FLAG(DELIVERY_COMPLETE)
FLAG(PEER) FLAG(DISCARD) FLAG(CLAIM)

CONSTANT(unsigned, EP_RDM)
CONSTANT(int, ENABLE)
CONSTANT(size_t, CLASS_AV)
CONSTANT(size_t, CLASS_CQ)
CONSTANT(size_t, CLASS_CNTR)
CONSTANT(unsigned, CQ_FORMAT_DATA)
CONSTANT(unsigned, CQ_FORMAT_TAGGED)
CONSTANT(ssize_t, EAVAIL)
