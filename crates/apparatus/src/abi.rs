//! The structures of libfabric that the hook uses, as `rdma/fabric.h` and the headers beside it declare
//! them (libfabric 1.17 and 2.5). The test below compares sizes and offsets with the installed headers.
//!
//! Each table of functions begins with its size. Later versions of libfabric only append members, so the
//! size tells which members a table has.

use core::ffi::{c_char, c_int, c_void};

macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($member:ident($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $table {
            pub size: usize,
            $(pub $member: Option<unsafe extern "C" fn($($argument),*) $(-> $result)?>,)*
        }

        #[cfg(test)]
        #[allow(dead_code, reason = "the hook replaces no function of some tables")]
        impl $table {
            /// Returns the table of a fake provider. Each function of it records that it was called.
            pub fn fake() -> Self {
                Self {
                    size: size_of::<Self>(),
                    $($member: Some({
                        unsafe extern "C" fn fake($(_: $argument),*) $(-> $result)? {
                            crate::fake_calls::called(concat!(stringify!($table), ".", stringify!($member)))
                        }
                        fake
                    }),)*
                }
            }

            /// Returns all functions of a table, each called with the sample that [`crate::fake_calls`] holds
            /// for its types.
            pub fn calls(table: *const Self) -> Vec<crate::fake_calls::Call> {
                vec![$((
                    concat!(stringify!($table), ".", stringify!($member)),
                    // SAFETY: the tests keep the table and the arguments alive for the call.
                    Box::new(move || unsafe {
                        let function = (*table).$member.unwrap();
                        crate::fake_calls::Number::number(function($(<$argument as crate::fake_calls::Sample>::sample()),*))
                    }),
                )),*]
            }
        }
    };
}

pub type Address = u64;
/// A pointer that the hook passes on without following it.
pub type Opaque = *mut c_void;
type Ptr<T> = *mut T;

// Error numbers; functions return them negative.
pub const EAGAIN: isize = 11;
pub const ENOMSG: c_int = 42;
pub const EAVAIL: isize = 259;
pub const ENOSYS: isize = 38;
pub const ETIMEDOUT: isize = 110;

// Flags of operations and completions.
pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const TAGGED: u64 = 1 << 3;
pub const ATOMIC: u64 = 1 << 4;
pub const READ: u64 = 1 << 8;
pub const WRITE: u64 = 1 << 9;
pub const RECV: u64 = 1 << 10;
pub const TRANSMIT: u64 = 1 << 11;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
pub const MULTI_RECV: u64 = 1 << 16;
pub const REMOTE_CQ_DATA: u64 = 1 << 17;
pub const PEEK: u64 = 1 << 19;
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const PEER: u64 = 1 << 43;
pub const DISCARD: u64 = 1 << 58;
pub const CLAIM: u64 = 1 << 59;

/// `FI_EP_RDM`.
pub const EP_RDM: c_int = 3;
/// `FI_ENABLE` of `fi_control`.
pub const ENABLE: c_int = 6;
/// `FI_CLASS_AV`, `FI_CLASS_CQ`, `FI_CLASS_CNTR`.
pub const CLASS_AV: usize = 11;
pub const CLASS_CQ: usize = 14;
pub const CLASS_CNTR: usize = 15;
/// `FI_CQ_FORMAT_DATA`, `FI_CQ_FORMAT_TAGGED`.
pub const FORMAT_DATA: c_int = 3;
pub const FORMAT_TAGGED: c_int = 4;

#[repr(C)]
pub struct Context {
    pub internal: [Opaque; 4],
}

#[repr(C)]
pub struct Provider {
    pub version: u32,
    pub fi_version: u32,
    pub context: Context,
    pub name: *const c_char,
    pub getinfo: Option<
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
    >,
    pub fabric: Option<unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, Opaque) -> c_int>,
    pub cleanup: Option<unsafe extern "C" fn()>,
}

#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut Fabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[repr(C)]
pub struct Info {
    pub next: *mut Self,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: Opaque,
    pub dest_addr: Opaque,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: Opaque,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
    pub nic: Opaque,
}

/// The members that the hook reads, and those before them.
#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
}

/// The members that the hook reads, and those before them.
#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
}

/// The members that the hook reads, and those before them.
#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut Domain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
}

#[repr(C)]
pub struct Fid {
    pub fclass: usize,
    pub context: Opaque,
    pub ops: *const Ops,
}

functions! {
    Ops {
        close(Ptr<Fid>) -> c_int;
        bind(Ptr<Fid>, Ptr<Fid>, u64) -> c_int;
        control(Ptr<Fid>, c_int, Opaque) -> c_int;
        ops_open(Ptr<Fid>, *const c_char, u64, Ptr<Opaque>, Opaque) -> c_int;
    }
}

#[repr(C)]
pub struct Fabric {
    pub fid: Fid,
    pub ops: *const FabricOps,
    pub api_version: u32,
}

functions! {
    FabricOps {
        domain(Ptr<Fabric>, Ptr<Info>, Ptr<Ptr<Domain>>, Opaque) -> c_int;
        passive_ep(Ptr<Fabric>, Ptr<Info>, Ptr<Opaque>, Opaque) -> c_int;
        eq_open(Ptr<Fabric>, Opaque, Ptr<Opaque>, Opaque) -> c_int;
        wait_open(Ptr<Fabric>, Opaque, Ptr<Opaque>) -> c_int;
        trywait(Ptr<Fabric>, Ptr<Ptr<Fid>>, c_int) -> c_int;
        domain2(Ptr<Fabric>, Ptr<Info>, Ptr<Ptr<Domain>>, u64, Opaque) -> c_int;
    }
}

#[repr(C)]
pub struct Domain {
    pub fid: Fid,
    pub ops: *const DomainOps,
    pub mr: Opaque,
}

functions! {
    DomainOps {
        av_open(Ptr<Domain>, Opaque, Ptr<Ptr<Av>>, Opaque) -> c_int;
        cq_open(Ptr<Domain>, Ptr<CqAttr>, Ptr<Ptr<Cq>>, Opaque) -> c_int;
        endpoint(Ptr<Domain>, Ptr<Info>, Ptr<Ptr<Ep>>, Opaque) -> c_int;
        scalable_ep(Ptr<Domain>, Ptr<Info>, Ptr<Ptr<Ep>>, Opaque) -> c_int;
        cntr_open(Ptr<Domain>, Opaque, Ptr<Ptr<Cntr>>, Opaque) -> c_int;
        poll_open(Ptr<Domain>, Opaque, Ptr<Opaque>) -> c_int;
        stx_ctx(Ptr<Domain>, Opaque, Ptr<Opaque>, Opaque) -> c_int;
        srx_ctx(Ptr<Domain>, Opaque, Ptr<Ptr<Ep>>, Opaque) -> c_int;
        query_atomic(Ptr<Domain>, c_int, c_int, Opaque, u64) -> c_int;
        query_collective(Ptr<Domain>, c_int, Opaque, u64) -> c_int;
        endpoint2(Ptr<Domain>, Ptr<Info>, Ptr<Ptr<Ep>>, u64, Opaque) -> c_int;
    }
}

#[repr(C)]
pub struct Av {
    pub fid: Fid,
    pub ops: *const AvOps,
}

functions! {
    AvOps {
        insert(Ptr<Av>, *const c_void, usize, Ptr<Address>, u64, Opaque) -> c_int;
        insertsvc(Ptr<Av>, *const c_char, *const c_char, Ptr<Address>, u64, Opaque) -> c_int;
        insertsym(Ptr<Av>, *const c_char, usize, *const c_char, usize, Ptr<Address>, u64, Opaque) -> c_int;
        remove(Ptr<Av>, Ptr<Address>, usize, u64) -> c_int;
        lookup(Ptr<Av>, Address, Opaque, Ptr<usize>) -> c_int;
    }
}

#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: Opaque,
}

#[repr(C)]
pub struct Cq {
    pub fid: Fid,
    pub ops: *const CqOps,
}

functions! {
    CqOps {
        read(Ptr<Cq>, Opaque, usize) -> isize;
        readfrom(Ptr<Cq>, Opaque, usize, Ptr<Address>) -> isize;
        readerr(Ptr<Cq>, Ptr<ErrEntry>, u64) -> isize;
        sread(Ptr<Cq>, Opaque, usize, *const c_void, c_int) -> isize;
        sreadfrom(Ptr<Cq>, Opaque, usize, Ptr<Address>, *const c_void, c_int) -> isize;
        signal(Ptr<Cq>) -> c_int;
        strerror(Ptr<Cq>, c_int, *const c_void, Ptr<c_char>, usize) -> *const c_char;
    }
}

/// A completion of the longest format. The other formats are a prefix of it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub op_context: Opaque,
    pub flags: u64,
    pub len: usize,
    pub buf: Opaque,
    pub data: u64,
    pub tag: u64,
}

#[repr(C)]
pub struct ErrEntry {
    pub op_context: Opaque,
    pub flags: u64,
    pub len: usize,
    pub buf: Opaque,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: Opaque,
    pub err_data_size: usize,
}

#[repr(C)]
pub struct Cntr {
    pub fid: Fid,
    pub ops: *const CntrOps,
}

functions! {
    CntrOps {
        read(Ptr<Cntr>) -> u64;
        readerr(Ptr<Cntr>) -> u64;
        add(Ptr<Cntr>, u64) -> c_int;
        set(Ptr<Cntr>, u64) -> c_int;
        wait(Ptr<Cntr>, u64, c_int) -> c_int;
    }
}

#[repr(C)]
pub struct Ep {
    pub fid: Fid,
    pub ops: Opaque,
    pub cm: *const CmOps,
    pub msg: *const MsgOps,
    pub rma: *const RmaOps,
    pub tagged: *const TaggedOps,
    pub atomic: *const AtomicOps,
    pub collective: Opaque,
}

functions! {
    CmOps {
        setname(Ptr<Fid>, Opaque, usize) -> c_int;
        getname(Ptr<Fid>, Opaque, Ptr<usize>) -> c_int;
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct IoVec {
    pub base: Opaque,
    pub len: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Msg {
    pub iov: *const IoVec,
    pub desc: *mut Opaque,
    pub iov_count: usize,
    pub addr: Address,
    pub context: Opaque,
    pub data: u64,
}

functions! {
    MsgOps {
        recv(Ptr<Ep>, Opaque, usize, Opaque, Address, Opaque) -> isize;
        recvv(Ptr<Ep>, *const IoVec, Ptr<Opaque>, usize, Address, Opaque) -> isize;
        recvmsg(Ptr<Ep>, *const Msg, u64) -> isize;
        send(Ptr<Ep>, *const c_void, usize, Opaque, Address, Opaque) -> isize;
        sendv(Ptr<Ep>, *const IoVec, Ptr<Opaque>, usize, Address, Opaque) -> isize;
        sendmsg(Ptr<Ep>, *const Msg, u64) -> isize;
        inject(Ptr<Ep>, *const c_void, usize, Address) -> isize;
        senddata(Ptr<Ep>, *const c_void, usize, Opaque, u64, Address, Opaque) -> isize;
        injectdata(Ptr<Ep>, *const c_void, usize, u64, Address) -> isize;
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct TaggedMsg {
    pub iov: *const IoVec,
    pub desc: *mut Opaque,
    pub iov_count: usize,
    pub addr: Address,
    pub tag: u64,
    pub ignore: u64,
    pub context: Opaque,
    pub data: u64,
}

functions! {
    TaggedOps {
        recv(Ptr<Ep>, Opaque, usize, Opaque, Address, u64, u64, Opaque) -> isize;
        recvv(Ptr<Ep>, *const IoVec, Ptr<Opaque>, usize, Address, u64, u64, Opaque) -> isize;
        recvmsg(Ptr<Ep>, *const TaggedMsg, u64) -> isize;
        send(Ptr<Ep>, *const c_void, usize, Opaque, Address, u64, Opaque) -> isize;
        sendv(Ptr<Ep>, *const IoVec, Ptr<Opaque>, usize, Address, u64, Opaque) -> isize;
        sendmsg(Ptr<Ep>, *const TaggedMsg, u64) -> isize;
        inject(Ptr<Ep>, *const c_void, usize, Address, u64) -> isize;
        senddata(Ptr<Ep>, *const c_void, usize, Opaque, u64, Address, u64, Opaque) -> isize;
        injectdata(Ptr<Ep>, *const c_void, usize, u64, Address, u64) -> isize;
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct RmaMsg {
    pub iov: *const IoVec,
    pub desc: *mut Opaque,
    pub iov_count: usize,
    pub addr: Address,
    pub rma_iov: *const c_void,
    pub rma_iov_count: usize,
    pub context: Opaque,
    pub data: u64,
}

functions! {
    RmaOps {
        read(Ptr<Ep>, Opaque, usize, Opaque, Address, u64, u64, Opaque) -> isize;
        readv(Ptr<Ep>, *const IoVec, Ptr<Opaque>, usize, Address, u64, u64, Opaque) -> isize;
        readmsg(Ptr<Ep>, *const RmaMsg, u64) -> isize;
        write(Ptr<Ep>, *const c_void, usize, Opaque, Address, u64, u64, Opaque) -> isize;
        writev(Ptr<Ep>, *const IoVec, Ptr<Opaque>, usize, Address, u64, u64, Opaque) -> isize;
        writemsg(Ptr<Ep>, *const RmaMsg, u64) -> isize;
        inject(Ptr<Ep>, *const c_void, usize, Address, u64, u64) -> isize;
        writedata(Ptr<Ep>, *const c_void, usize, Opaque, u64, Address, u64, u64, Opaque) -> isize;
        injectdata(Ptr<Ep>, *const c_void, usize, u64, Address, u64, u64) -> isize;
    }
}

/// A buffer of `count` elements of the operation's datatype.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IoCount {
    pub addr: Opaque,
    pub count: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct AtomicMsg {
    pub iov: *const IoCount,
    pub desc: *mut Opaque,
    pub iov_count: usize,
    pub addr: Address,
    pub rma_iov: *const c_void,
    pub rma_iov_count: usize,
    pub datatype: c_int,
    pub op: c_int,
    pub context: Opaque,
    pub data: u64,
}

type Vector = *const IoCount;

functions! {
    AtomicOps {
        write(Ptr<Ep>, *const c_void, usize, Opaque, Address, u64, u64, c_int, c_int, Opaque) -> isize;
        writev(Ptr<Ep>, Vector, Ptr<Opaque>, usize, Address, u64, u64, c_int, c_int, Opaque) -> isize;
        writemsg(Ptr<Ep>, *const AtomicMsg, u64) -> isize;
        inject(Ptr<Ep>, *const c_void, usize, Address, u64, u64, c_int, c_int) -> isize;
        readwrite(Ptr<Ep>, *const c_void, usize, Opaque, Opaque, Opaque, Address, u64, u64, c_int, c_int, Opaque)
            -> isize;
        readwritev(Ptr<Ep>, Vector, Ptr<Opaque>, usize, Vector, Ptr<Opaque>, usize, Address, u64, u64, c_int, c_int,
            Opaque) -> isize;
        readwritemsg(Ptr<Ep>, *const AtomicMsg, Vector, Ptr<Opaque>, usize, u64) -> isize;
        compwrite(Ptr<Ep>, *const c_void, usize, Opaque, *const c_void, Opaque, Opaque, Opaque, Address, u64, u64,
            c_int, c_int, Opaque) -> isize;
        compwritev(Ptr<Ep>, Vector, Ptr<Opaque>, usize, Vector, Ptr<Opaque>, usize, Vector, Ptr<Opaque>, usize,
            Address, u64, u64, c_int, c_int, Opaque) -> isize;
        compwritemsg(Ptr<Ep>, *const AtomicMsg, Vector, Ptr<Opaque>, usize, Vector, Ptr<Opaque>, usize, u64) -> isize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    /// Returns offsets and sizes as computed here, each with the C expression for it.
    macro_rules! places {
        ($($ours:ident is $theirs:literal { $($member:ident as $name:literal),* $(,)? })*) => {
            vec![$(
                $((concat!("offsetof(", $theirs, ", ", $name, ")"), offset_of!($ours, $member)),)*
            )*]
        };
    }

    /// Structures that are declared here completely, so that their sizes must match as well.
    macro_rules! sizes {
        ($($ours:ident is $theirs:literal,)*) => { vec![$((concat!("sizeof(", $theirs, ")"), size_of::<$ours>()),)*] };
    }

    fn expected() -> Vec<(&'static str, usize)> {
        let mut all = places! {
            Provider is "struct fi_provider" { context as "context", name as "name", getinfo as "getinfo", fabric as "fabric", cleanup as "cleanup" }
            FabricAttr is "struct fi_fabric_attr" { fabric as "fabric", prov_name as "prov_name", api_version as "api_version" }
            Info is "struct fi_info" { caps as "caps", tx_attr as "tx_attr", ep_attr as "ep_attr", domain_attr as "domain_attr", nic as "nic" }
            TxAttr is "struct fi_tx_attr" { op_flags as "op_flags" }
            EpAttr is "struct fi_ep_attr" { kind as "type", max_msg_size as "max_msg_size" }
            DomainAttr is "struct fi_domain_attr" { threading as "threading", mr_mode as "mr_mode", cq_data_size as "cq_data_size" }
            Fid is "struct fid" { fclass as "fclass", ops as "ops" }
            Ops is "struct fi_ops" { close as "close", bind as "bind", control as "control", ops_open as "ops_open" }
            Fabric is "struct fid_fabric" { ops as "ops", api_version as "api_version" }
            FabricOps is "struct fi_ops_fabric" { domain as "domain", trywait as "trywait", domain2 as "domain2" }
            Domain is "struct fid_domain" { ops as "ops", mr as "mr" }
            DomainOps is "struct fi_ops_domain" { cq_open as "cq_open", endpoint as "endpoint", scalable_ep as "scalable_ep", cntr_open as "cntr_open", srx_ctx as "srx_ctx", endpoint2 as "endpoint2" }
            Av is "struct fid_av" { ops as "ops" }
            AvOps is "struct fi_ops_av" { insert as "insert", lookup as "lookup" }
            CmOps is "struct fi_ops_cm" { setname as "setname", getname as "getname" }
            Cntr is "struct fid_cntr" { ops as "ops" }
            CntrOps is "struct fi_ops_cntr" { read as "read", readerr as "readerr", add as "add", set as "set", wait as "wait" }
            CqAttr is "struct fi_cq_attr" { flags as "flags", format as "format" }
            Cq is "struct fid_cq" { ops as "ops" }
            CqOps is "struct fi_ops_cq" { read as "read", readfrom as "readfrom", readerr as "readerr", sread as "sread", sreadfrom as "sreadfrom", strerror as "strerror" }
            Entry is "struct fi_cq_tagged_entry" { flags as "flags", len as "len", data as "data", tag as "tag" }
            ErrEntry is "struct fi_cq_err_entry" { olen as "olen", err as "err", prov_errno as "prov_errno", err_data_size as "err_data_size" }
            Ep is "struct fid_ep" { cm as "cm", msg as "msg", rma as "rma", tagged as "tagged", atomic as "atomic", collective as "collective" }
            MsgOps is "struct fi_ops_msg" { recvmsg as "recvmsg", send as "send", sendv as "sendv", sendmsg as "sendmsg", inject as "inject", senddata as "senddata", injectdata as "injectdata" }
            Msg is "struct fi_msg" { iov_count as "iov_count", context as "context", data as "data" }
            TaggedOps is "struct fi_ops_tagged" { recvmsg as "recvmsg", send as "send", sendv as "sendv", sendmsg as "sendmsg", inject as "inject", senddata as "senddata", injectdata as "injectdata" }
            TaggedMsg is "struct fi_msg_tagged" { tag as "tag", context as "context", data as "data" }
            RmaOps is "struct fi_ops_rma" { read as "read", readmsg as "readmsg", write as "write", writemsg as "writemsg", inject as "inject", writedata as "writedata", injectdata as "injectdata" }
            RmaMsg is "struct fi_msg_rma" { iov_count as "iov_count", context as "context", data as "data" }
            AtomicOps is "struct fi_ops_atomic" { write as "write", writemsg as "writemsg", inject as "inject", readwrite as "readwrite", readwritemsg as "readwritemsg", compwrite as "compwrite", compwritemsg as "compwritemsg" }
            AtomicMsg is "struct fi_msg_atomic" { iov_count as "iov_count", datatype as "datatype", context as "context" }
        };
        all.extend(sizes! {
            Context is "struct fi_context", Provider is "struct fi_provider", Info is "struct fi_info",
            Fid is "struct fid", Fabric is "struct fid_fabric", Domain is "struct fid_domain", Ep is "struct fid_ep",
            Cq is "struct fid_cq", CqAttr is "struct fi_cq_attr", Entry is "struct fi_cq_tagged_entry",
            ErrEntry is "struct fi_cq_err_entry", Msg is "struct fi_msg", TaggedMsg is "struct fi_msg_tagged",
            RmaMsg is "struct fi_msg_rma", AtomicMsg is "struct fi_msg_atomic", IoCount is "struct fi_ioc",
            MsgOps is "struct fi_ops_msg", TaggedOps is "struct fi_ops_tagged", RmaOps is "struct fi_ops_rma",
        });
        all.extend([
            ("offsetof(struct fi_cq_data_entry, data)", offset_of!(Entry, data)),
            ("sizeof(struct fi_cq_data_entry)", offset_of!(Entry, tag)),
            ("FI_EAGAIN", EAGAIN as usize),
            ("FI_ENOMSG", ENOMSG as usize),
            ("FI_EAVAIL", EAVAIL as usize),
            ("FI_ENOSYS", ENOSYS as usize),
            ("FI_ETIMEDOUT", ETIMEDOUT as usize),
            ("FI_EP_RDM", EP_RDM as usize),
            ("FI_ENABLE", ENABLE as usize),
            ("FI_CLASS_AV", CLASS_AV),
            ("FI_CLASS_CQ", CLASS_CQ),
            ("FI_CLASS_CNTR", CLASS_CNTR),
            ("FI_CQ_FORMAT_DATA", FORMAT_DATA as usize),
            ("FI_CQ_FORMAT_TAGGED", FORMAT_TAGGED as usize),
        ]);
        let flags = [
            ("FI_MSG", MSG),
            ("FI_RMA", RMA),
            ("FI_TAGGED", TAGGED),
            ("FI_ATOMIC", ATOMIC),
            ("FI_READ", READ),
            ("FI_WRITE", WRITE),
            ("FI_REMOTE_READ", REMOTE_READ),
            ("FI_REMOTE_WRITE", REMOTE_WRITE),
            ("FI_RECV", RECV),
            ("FI_TRANSMIT", TRANSMIT),
            ("FI_MULTI_RECV", MULTI_RECV),
            ("FI_REMOTE_CQ_DATA", REMOTE_CQ_DATA),
            ("FI_PEEK", PEEK),
            ("FI_DELIVERY_COMPLETE", DELIVERY_COMPLETE),
            ("FI_PEER", PEER),
            ("FI_DISCARD", DISCARD),
            ("FI_CLAIM", CLAIM),
        ];
        all.extend(flags.map(|(name, flag)| (name, flag as usize)));
        all
    }

    #[test]
    #[cfg_attr(miri, ignore = "runs a compiler")]
    fn the_structures_are_those_of_the_headers() {
        if !Path::new("/usr/include/rdma/providers/fi_prov.h").exists() {
            // `check` installs the headers and sets this variable.
            assert!(std::env::var_os("NETDYNO_LIBFABRIC_HEADERS").is_none());
            println!("SKIPPED: libfabric's headers are not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("places.c"), folder.path().join("places"));
        let headers = [
            "fabric",
            "fi_domain",
            "fi_endpoint",
            "fi_tagged",
            "fi_rma",
            "fi_atomic",
            "fi_eq",
            "fi_cm",
            "fi_errno",
            "providers/fi_prov",
        ];
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
        headers.iter().for_each(|name| writeln!(text, "#include <rdma/{name}.h>").unwrap());
        text.push_str("int main(void) {\n");
        let expected = expected();
        for (expression, _) in &expected {
            writeln!(text, "printf(\"%llu\\n\", (unsigned long long)({expression}));").unwrap();
        }
        text.push_str("return 0; }\n");
        std::fs::write(&source, text).unwrap();
        let built = Command::new("cc").arg("-o").arg(&program).arg(&source).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let theirs: Vec<usize> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(theirs.len(), expected.len());
        for ((expression, ours), theirs) in expected.iter().zip(theirs) {
            assert_eq!(*ours, theirs, "{expression}");
        }
    }
}
