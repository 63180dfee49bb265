//! What the provider offers (fi_getinfo(3)).

use super::guard::{Errno, entries};
use super::resolve::resolve;
use crate::abi::{self, Info};
use crate::engine::PAYLOAD;
use crate::frame::MOST_SEGMENTS;
use crate::links::{NAME_LEN, Name};
use core::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// The version of the provider, as libfabric writes versions.
pub const VERSION: u32 = 1 << 16;
/// The version of libfabric from which on the mode of memory registration is a set of bits.
const VERSION_OF_MR_MODES: u32 = 1 << 16 | 5;
/// The name of the provider.
pub const NAME: &CStr = c"netdyno";
/// The format of its addresses: its own.
const ADDRESS_FORMAT: u32 = 1 << 31 | 0x6e64;
/// The protocol of its endpoints: its own.
const PROTOCOL: u32 = 1 << 31 | 0x6e64;
/// Longest message in bytes.
pub const LONGEST_MESSAGE: usize = 1 << 40;
/// Number of operations that an endpoint takes before it asks the program to wait.
const DEPTH: usize = 4096;
/// Most objects of a kind in a domain.
const MOST: usize = 1 << 15;
/// A tag of 64 bits, of which a program may use all (`FI_TAG_GENERIC`).
const TAG_FORMAT: u64 = 0xaaaa_aaaa_aaaa_aaaa;
/// Room behind each structure, for members that later versions of libfabric append.
const SPARE: usize = 256;

const TRANSMIT_CAPS: u64 =
    abi::MSG | abi::TAGGED | abi::RMA | abi::ATOMIC | abi::SEND | abi::READ | abi::WRITE;
const RECEIVE_CAPS: u64 = abi::MSG
    | abi::TAGGED
    | abi::RMA
    | abi::ATOMIC
    | abi::RECV
    | abi::REMOTE_READ
    | abi::REMOTE_WRITE
    | abi::MULTI_RECV
    | abi::DIRECTED_RECV
    | abi::RMA_EVENT
    | abi::SOURCE;
const DOMAIN_CAPS: u64 = abi::LOCAL_COMM | abi::REMOTE_COMM;
const CAPS: u64 = TRANSMIT_CAPS | RECEIVE_CAPS | DOMAIN_CAPS;
const ORDER: u64 = abi::ORDER_SAS
    | abi::ORDER_ATOMIC_RAR
    | abi::ORDER_ATOMIC_RAW
    | abi::ORDER_ATOMIC_WAR
    | abi::ORDER_ATOMIC_WAW;
/// Flags of operations that a program may make the default.
const TRANSMIT_FLAGS: u64 =
    abi::COMPLETION | abi::INJECT | abi::INJECT_COMPLETE | abi::TRANSMIT_COMPLETE | abi::DELIVERY_COMPLETE;
const RECEIVE_FLAGS: u64 = abi::COMPLETION | abi::MULTI_RECV;

entries! {
    fn get_info(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const Info,
        info: *mut *mut Info,
    ) -> c_int {
        let wanted = hints.as_ref();
        if let Some(wanted) = wanted {
            check(wanted)?;
        }
        let named = resolve(node, service)?;
        let is_source = flags & abi::SOURCE != 0 || node.is_null();
        let source = if is_source { named } else { resolve(ptr::null(), ptr::null())? };
        *info = build(wanted, version);
        let built = (*info).as_mut().ok_or(Errno(abi::ENOMEM))?;
        // Node and service are the source then, whatever the hints say.
        let wanted_source = wanted.filter(|_| flags & abi::SOURCE == 0);
        let wanted_source = wanted_source.and_then(|wanted| given(wanted.src_addr, wanted.src_addrlen));
        (built.src_addr, built.src_addrlen) = wanted_source.unwrap_or_else(|| address(source));
        if !is_source {
            (built.dest_addr, built.dest_addrlen) = address(named);
        } else if let Some((address, len)) = wanted.and_then(|wanted| given(wanted.dest_addr, wanted.dest_addrlen)) {
            (built.dest_addr, built.dest_addrlen) = (address, len);
        }
        Ok(0)
    }
}

/// Returns the bytes of an address, which libfabric frees, and their number.
unsafe fn address(name: Name) -> (*mut c_void, usize) {
    // SAFETY: any arguments are allowed, and the bytes have room.
    unsafe {
        let bytes = libc::malloc(NAME_LEN);
        if bytes.is_null() {
            return (bytes, 0);
        }
        ptr::copy_nonoverlapping(name.encode().as_ptr(), bytes.cast(), NAME_LEN);
        (bytes, NAME_LEN)
    }
}

/// Returns a copy of an address in hints, if it is one of this provider's.
unsafe fn given(bytes: *const c_void, len: usize) -> Option<(*mut c_void, usize)> {
    // SAFETY: libfabric passes hints whose addresses have these lengths.
    let name = unsafe { bytes.cast::<[u8; NAME_LEN]>().as_ref() }.filter(|_| len == NAME_LEN)?;
    // SAFETY: any name is allowed.
    Name::parse(name).map(|name| unsafe { address(name) })
}

/// Checks whether the provider has what the program wants.
unsafe fn check(hints: &Info) -> Result<(), Errno> {
    let is_offered = |wanted: u64, offered: u64| wanted & !offered == 0;
    let mut fits = is_offered(hints.caps, CAPS);
    fits &= hints.addr_format == 0 || hints.addr_format == ADDRESS_FORMAT;
    // SAFETY: libfabric passes hints whose members lead to structures, or to nothing.
    unsafe {
        if let Some(ep) = hints.ep_attr.as_ref() {
            fits &= ep.type_ == abi::EP_UNSPEC || ep.type_ == abi::EP_RDM;
            fits &= ep.protocol == 0 || ep.protocol == PROTOCOL;
            fits &= ep.max_msg_size <= LONGEST_MESSAGE && ep.msg_prefix_size == 0;
            fits &= ep.tx_ctx_cnt <= 1 && ep.rx_ctx_cnt <= 1;
            fits &= ep.max_order_raw_size == 0 && ep.max_order_war_size == 0 && ep.max_order_waw_size == 0;
        }
        if let Some(tx) = hints.tx_attr.as_ref() {
            fits &=
                is_offered(tx.caps, TRANSMIT_CAPS | DOMAIN_CAPS) && is_offered(tx.op_flags, TRANSMIT_FLAGS);
            fits &= is_offered(tx.msg_order, ORDER) && is_offered(tx.comp_order, 0);
            fits &= tx.inject_size <= PAYLOAD && tx.size <= DEPTH;
            fits &= tx.iov_limit <= MOST_SEGMENTS && tx.rma_iov_limit <= 1;
        }
        if let Some(rx) = hints.rx_attr.as_ref() {
            fits &= is_offered(rx.caps, RECEIVE_CAPS | DOMAIN_CAPS) && is_offered(rx.op_flags, RECEIVE_FLAGS);
            fits &= is_offered(rx.msg_order, ORDER) && is_offered(rx.comp_order, 0);
            fits &= rx.size <= DEPTH && rx.iov_limit <= MOST_SEGMENTS;
        }
        if let Some(domain) = hints.domain_attr.as_ref() {
            fits &=
                domain.control_progress != abi::PROGRESS_AUTO && domain.data_progress != abi::PROGRESS_AUTO;
            fits &= is_offered(domain.caps, DOMAIN_CAPS) && domain.cq_data_size <= size_of::<u64>();
            fits &= domain.mr_key_size <= size_of::<u64>() && domain.mr_iov_limit <= MOST_SEGMENTS;
            // Peers name bytes of a region by their offset, and the program chooses the keys.
            fits &= domain.mr_mode & abi::MR_BASIC == 0;
            fits &= is_name_ours(domain.name);
        }
        if let Some(fabric) = hints.fabric_attr.as_ref() {
            fits &= is_name_ours(fabric.name);
        }
    }
    if fits { Ok(()) } else { Err(Errno(abi::ENODATA)) }
}

/// Returns whether a name is this provider's, or none.
unsafe fn is_name_ours(name: *const c_char) -> bool {
    // SAFETY: names in hints are strings, or nothing.
    name.is_null() || unsafe { CStr::from_ptr(name) }.to_bytes().eq_ignore_ascii_case(NAME.to_bytes())
}

/// Allocates a zeroed structure, which libfabric frees.
unsafe fn allocate<T>() -> *mut T {
    // SAFETY: any arguments are allowed.
    unsafe { libc::calloc(1, size_of::<T>() + SPARE).cast() }
}

/// Returns what the provider offers to a program that wants this.
unsafe fn build(hints: Option<&Info>, version: u32) -> *mut Info {
    // SAFETY: the structures are this function's own, and those of the hints are as libfabric passes them. A structure
    // of zeros is valid.
    unsafe {
        let info = allocate::<Info>();
        let Some(ours) = info.as_mut() else { return ptr::null_mut() };
        ours.caps = match hints.map_or(0, |hints| hints.caps) {
            0 => CAPS,
            // The primary capabilities are those that the program has asked for; the others come with them.
            wanted => {
                wanted
                    | CAPS
                        & (DOMAIN_CAPS
                            | abi::SOURCE
                            | abi::SEND
                            | abi::RECV
                            | abi::READ
                            | abi::WRITE
                            | abi::REMOTE_READ
                            | abi::REMOTE_WRITE)
            }
        };
        ours.addr_format = ADDRESS_FORMAT;
        (ours.tx_attr, ours.rx_attr) = (allocate(), allocate());
        (ours.ep_attr, ours.domain_attr, ours.fabric_attr) = (allocate(), allocate(), allocate());
        let (Some(tx), Some(rx)) = (ours.tx_attr.as_mut(), ours.rx_attr.as_mut()) else { return info };
        let hinted_tx = hints.and_then(|hints| hints.tx_attr.as_ref());
        let hinted_rx = hints.and_then(|hints| hints.rx_attr.as_ref());
        tx.caps = ours.caps & TRANSMIT_CAPS;
        tx.op_flags = hinted_tx.map_or(0, |hinted| hinted.op_flags);
        tx.msg_order = ORDER;
        tx.inject_size = PAYLOAD;
        tx.size = DEPTH;
        tx.iov_limit = MOST_SEGMENTS;
        tx.rma_iov_limit = 1;
        rx.caps = ours.caps & RECEIVE_CAPS;
        rx.op_flags = hinted_rx.map_or(0, |hinted| hinted.op_flags);
        rx.msg_order = ORDER;
        rx.size = DEPTH;
        rx.iov_limit = MOST_SEGMENTS;
        if let Some(ep) = ours.ep_attr.as_mut() {
            let hinted = hints.and_then(|hints| hints.ep_attr.as_ref());
            ep.type_ = abi::EP_RDM;
            ep.protocol = PROTOCOL;
            ep.protocol_version = 1;
            ep.max_msg_size = LONGEST_MESSAGE;
            ep.mem_tag_format = hinted.map_or(0, |hinted| hinted.mem_tag_format);
            if ep.mem_tag_format == 0 {
                ep.mem_tag_format = TAG_FORMAT;
            }
            (ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (1, 1);
        }
        if let Some(domain) = ours.domain_attr.as_mut() {
            let hinted = hints.and_then(|hints| hints.domain_attr.as_ref());
            let either = |wanted: u32, other: u32| if wanted == 0 { other } else { wanted };
            domain.name = libc::strdup(NAME.as_ptr());
            domain.threading = either(hinted.map_or(0, |hinted| hinted.threading), abi::THREAD_SAFE);
            (domain.control_progress, domain.data_progress) = (abi::PROGRESS_MANUAL, abi::PROGRESS_MANUAL);
            domain.resource_mgmt = abi::RM_ENABLED;
            domain.av_type = either(hinted.map_or(0, |hinted| hinted.av_type), abi::AV_MAP);
            let is_scalable = hinted.is_some_and(|hinted| hinted.mr_mode & abi::MR_SCALABLE != 0);
            domain.mr_mode = if version < VERSION_OF_MR_MODES || is_scalable { abi::MR_SCALABLE } else { 0 };
            domain.mr_key_size = size_of::<u64>();
            domain.cq_data_size = size_of::<u64>();
            (domain.cq_cnt, domain.ep_cnt, domain.cntr_cnt) = (MOST, MOST, MOST);
            (domain.tx_ctx_cnt, domain.rx_ctx_cnt) = (MOST, MOST);
            (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
            domain.mr_iov_limit = MOST_SEGMENTS;
            domain.caps = DOMAIN_CAPS;
            domain.mr_cnt = MOST;
        }
        if let Some(fabric) = ours.fabric_attr.as_mut() {
            fabric.name = libc::strdup(NAME.as_ptr());
            fabric.prov_version = VERSION;
        }
        info
    }
}
