/*
 * Programs that rely on what hardware allowed: no protection tag of a VI, no attributes of memory, and
 * a receive that ends beyond its memory. They also check a return code before they use a result.
 */
#include "pair.h"

#ifndef VIP_ERROR_NOT_SUPPORTED
#error "programs that define their own would give two meanings to one code"
#endif

#define COUNT 1000

static VIP_VI_HANDLE tagless_vi(VIP_NIC_HANDLE nic)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_HANDLE vi;
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = COUNT;
    OK(VipCreateVi(nic, &attributes, NULL, NULL, &vi));
    return vi;
}

static VIP_PROTECTION_HANDLE tag_of(VIP_VI_HANDLE vi)
{
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN is_send_empty, is_receive_empty;
    OK(VipQueryVi(vi, &state, &attributes, &is_send_empty, &is_receive_empty));
    return attributes.Ptag;
}

/* The tag of a VI without one is the first tag that the program creates. */
static void tag_after_vi(const char *device)
{
    VIP_NIC_HANDLE nic;
    VIP_PROTECTION_HANDLE first, second;
    VIP_VI_HANDLE vi;
    OK(VipOpenNic(device, &nic));
    vi = tagless_vi(nic);
    OK(VipCreatePtag(nic, &first));
    OK(VipCreatePtag(nic, &second));
    CHECK(tag_of(vi) == first && first != second);
    GIVES(VipDestroyPtag(nic, first), VIP_ERROR_RESOURCE);
    OK(VipDestroyVi(vi));
    OK(VipDestroyPtag(nic, first));
    vi = tagless_vi(nic);
    CHECK(tag_of(vi) != first && tag_of(vi) != second);
    OK(VipCloseNic(nic));
}

int main(int argc, char **argv)
{
    memory descriptors, data;
    VIP_DESCRIPTOR *d, *done;
    VIP_VI_HANDLE vi;
    void *bytes;
    start(argc, argv);
    descriptors = memory_of(4096);
    d = descriptors_of(descriptors);
    CHECK(posix_memalign(&bytes, 4096, 4096) == 0);
    memset(bytes, pair.is_client ? 7 : 0, 4096);
    data.bytes = bytes;
    data.count = 4096;
    OK(VipRegisterMem(pair.nic, bytes, data.count, NULL, &data.handle));
    vi = tagless_vi(pair.nic);
    CHECK(tag_of(vi) == pair.ptag);
    /* The receive reaches beyond its memory, but the message does not. */
    describe(d, data, 0, pair.is_client ? COUNT : data.count + 64);
    if (!pair.is_client)
        OK(VipPostRecv(vi, d, descriptors.handle));
    join_by(vi, "no tag");
    meet();
    if (pair.is_client) {
        OK(VipPostSend(vi, d, descriptors.handle));
        OK(VipSendWait(vi, LONG_MS, &done));
    } else {
        OK(VipRecvWait(vi, LONG_MS, &done));
        CHECK(data.bytes[0] == 7 && data.bytes[COUNT - 1] == 7 && data.bytes[COUNT] == 0);
    }
    CHECK(done == d);
    meet();
    part(vi);
    free_memory(data);
    tag_after_vi(argc > 1 ? argv[1] : "shm");
    finish();
    return 0;
}
