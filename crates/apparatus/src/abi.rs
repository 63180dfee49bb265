//! The structures and constants of libfabric that the hook uses. `bindings/generate` makes them from libfabric's
//! headers. The headers of libfabric 2.5 differ from those of 1.17, which were used, at the ends of structures alone.
//!
//! Each table of functions begins with its size. Later versions of libfabric only append members, so the
//! size tells which members a table has.

#[allow(clippy::type_complexity, dead_code, non_camel_case_types, reason = "C declares them")]
#[rustfmt::skip]
mod generated;

use core::ffi::{c_int, c_void};

pub use generated::{
    ATOMIC, CLAIM, CLASS_AV, CLASS_CNTR, CLASS_CQ, CQ_FORMAT_DATA, CQ_FORMAT_TAGGED, DELIVERY_COMPLETE,
    DISCARD, EAVAIL, ENABLE, EP_RDM, MSG, MULTI_RECV, PEEK, PEER, READ, RECV, REMOTE_CQ_DATA, REMOTE_READ,
    REMOTE_WRITE, RMA, TAGGED, TRANSMIT, WRITE,
};
pub use generated::{
    fi_addr_t as Address, fi_context as Context, fi_cq_attr as CqAttr, fi_cq_err_entry as ErrEntry,
    fi_cq_tagged_entry as Entry, fi_fabric_attr as FabricAttr, fi_info as Info, fi_ioc as IoCount,
    fi_msg as Msg, fi_msg_atomic as AtomicMsg, fi_msg_rma as RmaMsg, fi_msg_tagged as TaggedMsg,
    fi_ops as Ops, fi_ops_atomic as AtomicOps, fi_ops_cntr as CntrOps, fi_ops_cq as CqOps,
    fi_ops_domain as DomainOps, fi_ops_fabric as FabricOps, fi_ops_msg as MsgOps, fi_ops_rma as RmaOps,
    fi_ops_tagged as TaggedOps, fi_provider as Provider, fid as Fid, fid_av as Av, fid_cntr as Cntr,
    fid_cq as Cq, fid_domain as Domain, fid_ep as Ep, fid_fabric as Fabric, iovec as IoVec,
};

#[cfg(test)]
pub use generated::{fi_domain_attr as DomainAttr, fi_ep_attr as EpAttr};

/// A pointer that the hook passes on without following it.
pub type Opaque = *mut c_void;

// Functions return error numbers negative.
pub const EAGAIN: isize = generated::FI_EAGAIN as isize;
pub const ENOMSG: c_int = generated::FI_ENOMSG as c_int;
pub const ENOSYS: isize = generated::FI_ENOSYS as isize;
pub const ETIMEDOUT: isize = generated::FI_ETIMEDOUT as isize;

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
            fi_cq_attr { wait_set } fi_cq_tagged_entry { tag } fi_cq_err_entry { err_data_size } fi_msg { data }
            fi_msg_tagged { data } fi_msg_rma { data } fi_msg_atomic { data } fi_ioc { count } fi_ops { ops_set }
            fi_ops_fabric { domain2 } fi_ops_domain { endpoint2 } fi_ops_av { av_set } fi_ops_cq { strerror }
            fi_ops_cntr { seterr } fi_ops_cm { join } fi_ops_msg { injectdata } fi_ops_tagged { injectdata }
            fi_ops_rma { injectdata } fi_ops_atomic { compwritevalid }
        }
        .to_vec();
        all.extend(constants! {
            ATOMIC CLAIM CLASS_AV CLASS_CNTR CLASS_CQ CQ_FORMAT_DATA CQ_FORMAT_TAGGED DELIVERY_COMPLETE DISCARD
            EAGAIN EAVAIL ENABLE ENOMSG ENOSYS EP_RDM ETIMEDOUT MSG MULTI_RECV PEEK PEER READ RECV REMOTE_CQ_DATA
            REMOTE_READ REMOTE_WRITE RMA TAGGED TRANSMIT WRITE
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
