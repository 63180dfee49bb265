/*
 * All 41 functions with arguments that are not valid: NULL, stale handles, handles of other objects or
 * of none, impossible numbers. None crashes. Runs in one process.
 */
#include "pair.h"

static memory descriptors;
static VIP_DESCRIPTOR *d, *done;
static VIP_VI_ATTRIBUTES vi_attributes;
static VIP_MEM_ATTRIBUTES mem_attributes;
static VIP_BOOLEAN flag;
static VIP_VI_STATE state;
static VIP_MEM_HANDLE mem;
static VIP_PVOID out;
static VIP_ULONG count = 64;
static char name[64];
static place address;

static void on_vi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    (void) context, (void) nic, (void) vi, (void) descriptor;
}

static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receives)
{
    (void) context, (void) nic, (void) vi, (void) receives;
}

#define REFUSED(call) GIVES(call, VIP_INVALID_PARAMETER)

/* Calls all functions that take a NIC with a handle that is not one of a NIC. */
static void no_nic(VIP_NIC_HANDLE nic)
{
    VIP_NIC_ATTRIBUTES attributes;
    REFUSED(VipCloseNic(nic));
    REFUSED(VipQueryNic(nic, &attributes));
    REFUSED(VipErrorCallback(nic, NULL, NULL));
    REFUSED(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &out));
    REFUSED(VipCreatePtag(nic, &out));
    REFUSED(VipDestroyPtag(nic, pair.ptag));
    REFUSED(VipRegisterMem(nic, d, 64, &mem_attributes, &mem));
    REFUSED(VipDeregisterMem(nic, descriptors.bytes, descriptors.handle));
    REFUSED(VipQueryMem(nic, descriptors.bytes, descriptors.handle, &mem_attributes));
    REFUSED(VipSetMemAttributes(nic, descriptors.bytes, descriptors.handle, &mem_attributes));
    REFUSED(VipCreateVi(nic, &vi_attributes, NULL, NULL, &out));
    REFUSED(VipCreateCQ(nic, 4, &out));
    REFUSED(VipConnectWait(nic, &address.address, 0, &address.address, &vi_attributes, &out));
    REFUSED(VipNSInit(nic, NULL));
    REFUSED(VipNSGetHostByName(nic, name, &address.address, 0));
    REFUSED(VipNSGetHostByAddr(nic, &address.address, name, &count));
    REFUSED(VipNSShutdown(nic));
}

static void no_vi(VIP_VI_HANDLE vi)
{
    REFUSED(VipDestroyVi(vi));
    REFUSED(VipQueryVi(vi, &state, &vi_attributes, &flag, &flag));
    REFUSED(VipSetViAttributes(vi, &vi_attributes));
    REFUSED(VipPostSend(vi, d, descriptors.handle));
    REFUSED(VipPostRecv(vi, d, descriptors.handle));
    REFUSED(VipSendDone(vi, &done));
    REFUSED(VipRecvDone(vi, &done));
    REFUSED(VipSendWait(vi, VIP_INFINITE, &done));
    REFUSED(VipRecvWait(vi, VIP_INFINITE, &done));
    REFUSED(VipSendNotify(vi, NULL, on_vi));
    REFUSED(VipRecvNotify(vi, NULL, on_vi));
    REFUSED(VipConnectRequest(vi, &address.address, &address.address, VIP_INFINITE, &vi_attributes));
    REFUSED(VipConnectPeerRequest(vi, &address.address, &address.address, VIP_INFINITE));
    REFUSED(VipConnectPeerDone(vi, &vi_attributes));
    REFUSED(VipConnectPeerWait(vi, &vi_attributes));
    REFUSED(VipDisconnect(vi));
}

static void no_cq(VIP_CQ_HANDLE cq)
{
    REFUSED(VipDestroyCQ(cq));
    REFUSED(VipResizeCQ(cq, 4));
    REFUSED(VipCQDone(cq, &out, &flag));
    REFUSED(VipCQWait(cq, VIP_INFINITE, &out, &flag));
    REFUSED(VipCQNotify(cq, NULL, on_cq));
}

static void no_pointers(VIP_VI_HANDLE vi, VIP_CQ_HANDLE cq)
{
    VIP_NIC_HANDLE nic = pair.nic;
    VIP_NET_ADDRESS *at = &address.address;
    REFUSED(VipOpenNic("shm", NULL));
    REFUSED(VipOpenNic(NULL, &out));
    REFUSED(VipQueryNic(nic, NULL));
    REFUSED(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, NULL));
    GIVES(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &out), VIP_ERROR_NOT_SUPPORTED);
    REFUSED(VipQuerySystemManagementInfo(nic, 2, &out));
    REFUSED(VipCreatePtag(nic, NULL));
    REFUSED(VipRegisterMem(nic, NULL, 64, &mem_attributes, &mem));
    REFUSED(VipRegisterMem(nic, d, 0, &mem_attributes, &mem));
    REFUSED(VipRegisterMem(nic, d, 64, NULL, &mem));
    REFUSED(VipRegisterMem(nic, d, 64, &mem_attributes, NULL));
    REFUSED(VipQueryMem(nic, descriptors.bytes, descriptors.handle, NULL));
    REFUSED(VipSetMemAttributes(nic, descriptors.bytes, descriptors.handle, NULL));
    REFUSED(VipDeregisterMem(nic, descriptors.bytes + 1, descriptors.handle));
    REFUSED(VipDeregisterMem(nic, descriptors.bytes, descriptors.handle + 1));
    REFUSED(VipCreateVi(nic, NULL, NULL, NULL, &out));
    REFUSED(VipCreateVi(nic, &vi_attributes, NULL, NULL, NULL));
    REFUSED(VipCreateVi(nic, &vi_attributes, vi, NULL, &out));
    REFUSED(VipCreateVi(nic, &vi_attributes, NULL, nic, &out));
    REFUSED(VipQueryVi(vi, NULL, &vi_attributes, &flag, &flag));
    REFUSED(VipQueryVi(vi, &state, NULL, &flag, &flag));
    REFUSED(VipSetViAttributes(vi, NULL));
    REFUSED(VipPostSend(vi, NULL, descriptors.handle));
    REFUSED(VipPostSend(vi, (VIP_DESCRIPTOR *) (void *) (descriptors.bytes + 8), descriptors.handle));
    REFUSED(VipPostSend(vi, d, descriptors.handle + 1));
    REFUSED(VipPostRecv(vi, d + 1000, descriptors.handle));
    REFUSED(VipSendDone(vi, NULL));
    REFUSED(VipRecvWait(vi, 0, NULL));
    REFUSED(VipSendNotify(vi, NULL, NULL));
    REFUSED(VipCreateCQ(nic, 4, NULL));
    REFUSED(VipCQDone(cq, NULL, &flag));
    REFUSED(VipCQDone(cq, &out, NULL));
    REFUSED(VipCQWait(cq, 0, NULL, &flag));
    REFUSED(VipCQNotify(cq, NULL, NULL));
    REFUSED(VipConnectWait(nic, NULL, 0, at, &vi_attributes, &out));
    REFUSED(VipConnectWait(nic, at, 0, NULL, &vi_attributes, &out));
    REFUSED(VipConnectWait(nic, at, 0, at, NULL, &out));
    REFUSED(VipConnectWait(nic, at, 0, at, &vi_attributes, NULL));
    REFUSED(VipConnectAccept(NULL, vi));
    REFUSED(VipConnectAccept(vi, vi));
    REFUSED(VipConnectReject(NULL));
    REFUSED(VipConnectRequest(vi, NULL, at, 1, &vi_attributes));
    REFUSED(VipConnectRequest(vi, at, NULL, 1, &vi_attributes));
    REFUSED(VipConnectRequest(vi, at, at, 1, NULL));
    REFUSED(VipConnectPeerRequest(vi, at, NULL, 1));
    REFUSED(VipConnectPeerDone(vi, NULL));
    REFUSED(VipConnectPeerWait(vi, NULL));
    address.address.DiscriminatorLen = pair.attributes.MaxDiscriminatorLen + 1;
    REFUSED(VipConnectWait(nic, at, 0, at, &vi_attributes, &out));
    address = here("");
    address.address.HostAddressLen = 1;
    REFUSED(VipConnectRequest(vi, at, at, 1, &vi_attributes));
    address = here("");
}

static void attributes_that_can_not_be(void)
{
    VIP_VI_ATTRIBUTES wrong = vi_attributes;
    VIP_MEM_ATTRIBUTES tagless = {NULL, VIP_FALSE, VIP_FALSE};
    wrong.ReliabilityLevel = 3;
    GIVES(VipCreateVi(pair.nic, &wrong, NULL, NULL, &out), VIP_INVALID_RELIABILITY_LEVEL);
    wrong = vi_attributes;
    wrong.MaxTransferSize = pair.attributes.MaxTransferSize + 1;
    GIVES(VipCreateVi(pair.nic, &wrong, NULL, NULL, &out), VIP_INVALID_MTU);
    wrong.MaxTransferSize = (VIP_ULONG) -1;
    GIVES(VipCreateVi(pair.nic, &wrong, NULL, NULL, &out), VIP_INVALID_MTU);
    wrong = vi_attributes;
    wrong.QoS = &wrong;
    GIVES(VipCreateVi(pair.nic, &wrong, NULL, NULL, &out), VIP_INVALID_QOS);
    wrong = vi_attributes;
    wrong.Ptag = NULL;
    GIVES(VipCreateVi(pair.nic, &wrong, NULL, NULL, &out), VIP_INVALID_PTAG);
    wrong = attributes_of(VIP_SERVICE_UNRELIABLE);
    wrong.EnableRdmaRead = VIP_TRUE;
    GIVES(VipCreateVi(pair.nic, &wrong, NULL, NULL, &out), VIP_INVALID_RDMAREAD);
    GIVES(VipRegisterMem(pair.nic, d, 64, &tagless, &mem), VIP_INVALID_PTAG);
    GIVES(VipDestroyPtag(pair.nic, NULL), VIP_INVALID_PTAG);
    GIVES(VipDestroyPtag(pair.nic, pair.ptag), VIP_ERROR_RESOURCE);
    GIVES(VipRegisterMem(pair.nic, d, pair.attributes.MaxRegisterBlockBytes + 1, &mem_attributes, &mem),
          VIP_ERROR_RESOURCE);
}

static void names(void)
{
    char own[64];
    GIVES(VipNSGetHostByName(pair.nic, (VIP_CHAR *) "localhost", &address.address, 0), VIP_ERROR_NAMESERVICE);
    OK(VipNSInit(pair.nic, NULL));
    memset(&address, 0, sizeof address);
    OK(VipNSGetHostByName(pair.nic, (VIP_CHAR *) "localhost", &address.address, 0));
    CHECK(address.address.HostAddressLen == pair.attributes.NicAddressLen);
    REFUSED(VipNSGetHostByName(pair.nic, NULL, &address.address, 0));
    REFUSED(VipNSGetHostByName(pair.nic, name, NULL, 0));
    GIVES(VipNSGetHostByName(pair.nic, (VIP_CHAR *) "localhost", &address.address, 1000),
          VIP_ERROR_NAMESERVICE);
    address = here("");
    CHECK(gethostname(own, sizeof own) == 0);
    count = sizeof name;
    OK(VipNSGetHostByAddr(pair.nic, &address.address, name, &count));
    CHECK(count == strlen(own) && strcmp(name, own) == 0);
    count = 1;
    REFUSED(VipNSGetHostByAddr(pair.nic, &address.address, name, &count));
    CHECK(count == strlen(own));
    /* The discriminator is no part of the question. */
    address.address.DiscriminatorLen = 0xffff;
    count = sizeof name;
    OK(VipNSGetHostByAddr(pair.nic, &address.address, name, &count));
    OK(VipNSShutdown(pair.nic));
    GIVES(VipNSShutdown(pair.nic), VIP_ERROR_NAMESERVICE);
    GIVES(VipNSGetHostByAddr(pair.nic, &address.address, name, &count), VIP_ERROR_NAMESERVICE);
}

static void truth(void)
{
    const VIP_NIC_ATTRIBUTES *a = &pair.attributes;
    VIP_PROTECTION_HANDLE *tags = malloc((a->MaxPtags + 1) * sizeof *tags);
    VIP_ULONG made = 1;
    VIP_RETURN code;
    CHECK(strlen(a->Name) > 0 && a->ThreadSafe == VIP_TRUE && a->MaxDiscriminatorLen > 0);
    CHECK(a->ReliabilityLevelSupport == 7 && (a->RDMAReadSupport & VIP_SERVICE_UNRELIABLE) == 0);
    CHECK(a->NicAddressLen > 0 && a->LocalNicAddress != NULL);
    /* Exactly as many as the attributes say. */
    while ((code = VipCreatePtag(pair.nic, &tags[made])) == VIP_SUCCESS)
        CHECK(++made <= a->MaxPtags);
    CHECK(code == VIP_ERROR_RESOURCE && made == a->MaxPtags);
    while (made-- > 1)
        OK(VipDestroyPtag(pair.nic, tags[made]));
    free(tags);
}

int main(int argc, char **argv)
{
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE cq;
    char mine[64];
    alarm(60);
    /* Without this setting NULL is allowed as tag and as attributes; no_tag.c tests that. */
    CHECK(setenv("NETDYNO_VIPL_STRICT", "1", 1) == 0);
    open_nic(argc > 1 ? argv[1] : "shm");
    address = here("");
    truth();
    descriptors = memory_of(64);
    d = descriptors_of(descriptors);
    vi_attributes = attributes_of(VIP_SERVICE_RELIABLE_DELIVERY);
    OK(VipQueryMem(pair.nic, descriptors.bytes, descriptors.handle, &mem_attributes));
    CHECK(mem_attributes.Ptag == pair.ptag && mem_attributes.EnableRdmaWrite == VIP_TRUE);
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    OK(VipCreateCQ(pair.nic, 4, &cq));
    no_nic(NULL);
    no_nic(vi);
    no_nic(mine);
    no_vi(NULL);
    no_vi(cq);
    no_vi(mine);
    no_cq(NULL);
    no_cq(pair.nic);
    no_cq(mine);
    no_pointers(vi, cq);
    attributes_that_can_not_be();
    names();
    OK(VipDestroyCQ(cq));
    no_cq(cq);
    OK(VipDestroyVi(vi));
    no_vi(vi);
    vi = vi_of(VIP_SERVICE_RELIABLE_DELIVERY);
    OK(VipCloseNic(pair.nic));
    no_nic(pair.nic);
    no_vi(vi);
    return 0;
}
