//! The structures of libfabric that the hook touches, by its headers (`rdma/fabric.h` and those
//! beside it, libfabric 1.17 and 2.5). `tests/headers.rs` compares sizes and places with the
//! headers that are installed.
//!
//! Each table of functions begins with its size, so that a longer one of a later library is known
//! by it: members are only ever added at the end.

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
    };
}

pub type Address = u64;
/// Whatever the hook hands on without looking at it.
pub type Opaque = *mut c_void;
type Ptr<T> = *mut T;

// Error numbers, which are returned negative.
pub const EAGAIN: isize = 11;
pub const ENOMSG: c_int = 42;
pub const EAVAIL: isize = 259;
pub const ENOSYS: isize = 38;

// Flags of operations and completions.
pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const TAGGED: u64 = 1 << 3;
pub const ATOMIC: u64 = 1 << 4;
pub const RECV: u64 = 1 << 10;
pub const TRANSMIT: u64 = 1 << 11;
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
/// `FI_CLASS_CQ`, `FI_CLASS_CNTR`.
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

/// As far as it is read.
#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
}

/// As far as it is read.
#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
}

/// As far as it is read.
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

/// A completion of the longest format; those of others are its beginning.
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

/// An address, and how many data of a type there are.
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
