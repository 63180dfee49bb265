//! The structures and constants of libfabric, for the hook and for the provider. `bindings/generate` makes them from
//! libfabric's headers. The headers of libfabric 2.5 differ from those of 1.17, which were used, at the ends of
//! structures alone.
//!
//! Each table of functions begins with its size. Later versions of libfabric only append members, so the
//! size tells which members a table has.

#![forbid(unsafe_code)]

#[allow(clippy::type_complexity, dead_code, missing_docs, non_camel_case_types, reason = "C declares them")]
#[rustfmt::skip]
mod generated;

use core::ffi::c_void;

pub use generated::{
    ATOMIC, AV_MAP, AV_TABLE, CLAIM, CLASS_AV, CLASS_CNTR, CLASS_CQ, CLASS_DOMAIN, CLASS_EP, CLASS_EQ,
    CLASS_FABRIC, CLASS_MR, CLASS_POLL, CNTR_EVENTS_COMP, COMPARE_ATOMIC, COMPLETION, CQ_FORMAT_CONTEXT,
    CQ_FORMAT_DATA, CQ_FORMAT_MSG, CQ_FORMAT_TAGGED, CQ_FORMAT_UNSPEC, DELIVERY_COMPLETE, DIRECTED_RECV,
    DISCARD, ENABLE, EP_RDM, EP_UNSPEC, FETCH_ATOMIC, GETOPSFLAG, GETWAIT, INJECT, INJECT_COMPLETE,
    LOCAL_COMM, MATCH_COMPLETE, MR_BASIC, MR_SCALABLE, MSG, MULTI_RECV, OPT_ENDPOINT, OPT_MIN_MULTI_RECV,
    ORDER_ATOMIC_RAR, ORDER_ATOMIC_RAW, ORDER_ATOMIC_WAR, ORDER_ATOMIC_WAW, ORDER_SAS, PEEK, PEER,
    PROGRESS_AUTO, PROGRESS_MANUAL, READ, RECV, REMOTE_COMM, REMOTE_CQ_DATA, REMOTE_READ, REMOTE_WRITE,
    RM_ENABLED, RMA, RMA_EVENT, SELECTIVE_COMPLETION, SEND, SETOPSFLAG, SOURCE, SYNC_ERR, TAGGED,
    THREAD_SAFE, TRANSMIT, TRANSMIT_COMPLETE, WAIT_FD, WAIT_NONE, WAIT_UNSPEC, WAIT_YIELD, WRITE,
};
pub use generated::{
    fi_addr_t as Address, fi_atomic_attr as AtomicAttr, fi_av_attr as AvAttr, fi_cntr_attr as CntrAttr,
    fi_context as Context, fi_cq_attr as CqAttr, fi_cq_err_entry as ErrEntry, fi_cq_tagged_entry as Entry,
    fi_domain_attr as DomainAttr, fi_ep_attr as EpAttr, fi_eq_attr as EqAttr, fi_eq_err_entry as EqErrEntry,
    fi_fabric_attr as FabricAttr, fi_info as Info, fi_ioc as IoCount, fi_mr_attr as MrAttr, fi_msg as Msg,
    fi_msg_atomic as AtomicMsg, fi_msg_rma as RmaMsg, fi_msg_tagged as TaggedMsg, fi_ops as Ops,
    fi_ops_atomic as AtomicOps, fi_ops_av as AvOps, fi_ops_cm as CmOps, fi_ops_cntr as CntrOps,
    fi_ops_cq as CqOps, fi_ops_domain as DomainOps, fi_ops_ep as EpOps, fi_ops_eq as EqOps,
    fi_ops_fabric as FabricOps, fi_ops_mr as MrOps, fi_ops_msg as MsgOps, fi_ops_poll as PollOps,
    fi_ops_rma as RmaOps, fi_ops_tagged as TaggedOps, fi_poll_attr as PollAttr, fi_provider as Provider,
    fi_rma_ioc as RmaIoCount, fi_rx_attr as RxAttr, fi_tx_attr as TxAttr, fid as Fid, fid_av as Av,
    fid_cntr as Cntr, fid_cq as Cq, fid_domain as Domain, fid_ep as Ep, fid_eq as Eq, fid_fabric as Fabric,
    fid_mr as Mr, fid_pep as PassiveEp, fid_poll as Poll, iovec as IoVec,
};

/// A pointer that is passed on and not followed.
pub type Opaque = *mut c_void;

/// Any address.
pub const ADDR_UNSPEC: u64 = u64::MAX;
/// An address that nobody knows.
pub const ADDR_NOTAVAIL: u64 = u64::MAX;

/// Defines error numbers. Functions return them negative.
macro_rules! errors {
    ($($name:ident $theirs:ident $meaning:literal)*) => {$(
        #[doc = $meaning]
        pub const $name: isize = generated::$theirs as isize;
    )*};
}

errors! {
    EACCES FI_EACCES "The access is not allowed."
    EADDRINUSE FI_EADDRINUSE "Another process uses the address."
    EAGAIN FI_EAGAIN "There is no room, or nothing yet."
    EAVAIL FI_EAVAIL "An error is in the queue."
    EBADF FI_EBADF "The object does not exist."
    EBUSY FI_EBUSY "Another object uses it."
    ECANCELED FI_ECANCELED "The operation was cancelled."
    ECONNABORTED FI_ECONNABORTED "The peer has ended."
    ECONNREFUSED FI_ECONNREFUSED "The peer has no such endpoint."
    EINVAL FI_EINVAL "An argument is not valid."
    EIO FI_EIO "The transfer failed."
    EMFILE FI_EMFILE "There are too many objects."
    EMSGSIZE FI_EMSGSIZE "The message is too long."
    ENOAV FI_ENOAV "The endpoint has no address vector."
    ENOCQ FI_ENOCQ "The endpoint reports its operations nowhere."
    ENODATA FI_ENODATA "Nothing that is offered fits."
    ENODEV FI_ENODEV "The system refuses a resource."
    ENOENT FI_ENOENT "There is no such operation."
    ENOKEY FI_ENOKEY "The key is in use."
    ENOMEM FI_ENOMEM "There is no memory."
    ENOMSG FI_ENOMSG "No message matches."
    ENOPROTOOPT FI_ENOPROTOOPT "There is no such option."
    EOPNOTSUPP FI_EOPNOTSUPP "The operation is not supported."
    ENOSYS FI_ENOSYS "The function does not exist."
    EOTHER FI_EOTHER "The library has failed."
    ETIMEDOUT FI_ETIMEDOUT "The time is up."
    ETOOSMALL FI_ETOOSMALL "The buffer is too small."
    ETRUNC FI_ETRUNC "The message was longer than its receive."
}

#[cfg(test)]
mod tests {
    use super::generated::*;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    /// Returns the offset of the last member of each structure that all versions have, each with the C
    /// expression for it.
    macro_rules! offsets {
        ($($structure:ident { $member:ident })*) => {
            [$((
                concat!("offsetof(struct ", stringify!($structure), ", ", stringify!($member), ")"),
                offset_of!($structure, $member) as u64,
            )),*]
        };
    }

    /// Returns each constant, with the C expression for it.
    macro_rules! constants {
        ($($name:ident)*) => { [$((concat!("FI_", stringify!($name)), super::$name as u64)),*] };
    }

    fn expected() -> Vec<(&'static str, u64)> {
        let mut all = offsets! {
            fi_context { internal } fi_provider { cleanup } fi_fabric_attr { api_version } fi_info { nic }
            fi_tx_attr { tclass } fi_ep_attr { auth_key } fi_domain_attr { tclass } fid { ops } fid_av { ops }
            fid_cntr { ops } fid_cq { ops } fid_domain { mr } fid_ep { collective } fid_fabric { api_version }
            fi_cq_attr { wait_set } fi_rx_attr { iov_limit } fi_av_attr { flags } fi_cntr_attr { flags } fi_mr_attr { device }
            fid_mr { key } fi_ops_ep { tx_size_left } fi_ops_eq { strerror } fi_ops_poll { poll_del } fid_poll { ops } fi_poll_attr { flags } fi_atomic_attr { size } fi_rma_ioc { key } fid_eq { ops } fi_eq_attr { wait_set } fi_eq_err_entry { err_data_size } fi_ops_mr { regattr } fi_cq_tagged_entry { tag } fi_cq_err_entry { err_data_size } fi_msg { data }
            fi_msg_tagged { data } fi_msg_rma { data } fi_msg_atomic { data } fi_ioc { count } fi_ops { ops_set }
            fi_ops_fabric { domain2 } fi_ops_domain { endpoint2 } fi_ops_av { av_set } fi_ops_cq { strerror }
            fi_ops_cntr { seterr } fi_ops_cm { join } fi_ops_msg { injectdata } fi_ops_tagged { injectdata }
            fi_ops_rma { injectdata } fi_ops_atomic { compwritevalid }
        }
        .to_vec();
        all.extend(constants! {
            ADDR_NOTAVAIL ADDR_UNSPEC ATOMIC AV_MAP AV_TABLE CLAIM CLASS_AV CLASS_CNTR CLASS_CQ CLASS_DOMAIN CLASS_EP CLASS_EQ
            CLASS_FABRIC CLASS_MR CLASS_POLL CNTR_EVENTS_COMP COMPARE_ATOMIC COMPLETION CQ_FORMAT_CONTEXT CQ_FORMAT_DATA CQ_FORMAT_MSG
            CQ_FORMAT_TAGGED CQ_FORMAT_UNSPEC DELIVERY_COMPLETE DIRECTED_RECV DISCARD ENABLE EP_RDM EP_UNSPEC FETCH_ATOMIC
            GETOPSFLAG GETWAIT INJECT INJECT_COMPLETE LOCAL_COMM MATCH_COMPLETE MR_BASIC MR_SCALABLE MSG MULTI_RECV OPT_ENDPOINT OPT_MIN_MULTI_RECV
            ORDER_ATOMIC_RAR ORDER_ATOMIC_RAW ORDER_ATOMIC_WAR ORDER_ATOMIC_WAW ORDER_SAS PEEK PEER PROGRESS_AUTO PROGRESS_MANUAL READ RECV REMOTE_COMM REMOTE_CQ_DATA REMOTE_READ
            REMOTE_WRITE RM_ENABLED RMA RMA_EVENT SELECTIVE_COMPLETION SEND SETOPSFLAG SOURCE SYNC_ERR TAGGED THREAD_SAFE TRANSMIT
            TRANSMIT_COMPLETE WAIT_FD WAIT_NONE WAIT_UNSPEC WAIT_YIELD WRITE
            EACCES EADDRINUSE EAGAIN EAVAIL EBADF EBUSY ECANCELED ECONNABORTED ECONNREFUSED EINVAL EIO EMFILE EMSGSIZE ENOAV ENOCQ ENODATA
            ENODEV ENOENT ENOKEY ENOMEM ENOMSG ENOPROTOOPT ENOSYS EOPNOTSUPP EOTHER ETIMEDOUT ETOOSMALL ETRUNC
        });
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
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/bindings/libfabric.h");
        let mut text =
            format!("#include <stddef.h>\n#include <stdio.h>\n#include \"{header}\"\nint main(void) {{\n");
        let expected = expected();
        for (expression, _) in &expected {
            writeln!(text, "printf(\"%llu\\n\", (unsigned long long)({expression}));").unwrap();
        }
        text.push_str("return 0; }\n");
        std::fs::write(&source, text).unwrap();
        let built = Command::new("cc").arg("-o").arg(&program).arg(&source).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let theirs: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(theirs.len(), expected.len());
        for ((expression, ours), theirs) in expected.iter().zip(theirs) {
            assert_eq!(*ours, theirs, "{expression}");
        }
    }
}
