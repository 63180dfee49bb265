//! The structures of `plugins/layer.h`, member by member. A test compares sizes and offsets with those of a C
//! compiler.

use std::ffi::{c_char, c_int, c_void};

pub(crate) const VERSION: u32 = 1;
pub(crate) const TEXT_BYTES: usize = 512;
pub(crate) const ANY_RANK: i32 = -1;
pub(crate) const HAS_LAUNCHER: u64 = 1 << 0;
pub(crate) const GATHERS: u64 = 1 << 1;
pub(crate) const BLOCKS: u64 = 1 << 2;
pub(crate) const REQUESTS: u64 = 1 << 3;
pub(crate) const REGISTERS: u64 = 1 << 4;
pub(crate) const ONE_SIDED: u64 = 1 << 5;
pub(crate) const FETCH_ADD: u64 = 1 << 6;
pub(crate) const FENCE: u64 = 1 << 7;
pub(crate) const POST: u64 = 1 << 8;
pub(crate) const ALLOCATES: u64 = 1 << 9;

#[repr(C)]
pub(crate) struct Options {
    pub(crate) size: u32,
    pub(crate) slots: u32,
    pub(crate) largest: u64,
    pub(crate) rank: i32,
    pub(crate) ranks: i32,
    pub(crate) settings: *const *const c_char,
    pub(crate) error: *mut c_char,
    pub(crate) uses: u64,
}

#[repr(C)]
pub(crate) struct Address {
    pub(crate) bytes: *const c_void,
    pub(crate) length: usize,
}

#[repr(C)]
#[derive(Default)]
pub(crate) struct Arrival {
    pub(crate) bytes: usize,
    pub(crate) rank: i32,
    pub(crate) reserved: i32,
}

/// Opaque: only the layer knows its contents.
#[repr(C)]
pub(crate) struct RawChannel {
    _opaque: [u8; 0],
}

/// Opaque: only the layer knows its contents.
#[repr(C)]
pub(crate) struct RawRegion {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(crate) struct Transfer {
    pub(crate) region: Region,
    pub(crate) offset: u64,
    pub(crate) key: Address,
    pub(crate) key_offset: u64,
    pub(crate) bytes: usize,
    pub(crate) rank: i32,
    pub(crate) reserved: i32,
}

type Channel = *mut RawChannel;
type Region = *mut RawRegion;
pub(crate) type Open = unsafe extern "C" fn(*mut Options) -> Channel;
pub(crate) type Describe = unsafe extern "C" fn(Channel, *mut c_char, usize);
pub(crate) type WriteAddress = unsafe extern "C" fn(Channel, *mut c_void, usize) -> c_int;
pub(crate) type Connect = unsafe extern "C" fn(Channel, *const Address, u32) -> c_int;
pub(crate) type Gather = unsafe extern "C" fn(Channel, *const c_void, *mut c_void, usize) -> c_int;
pub(crate) type PostReceive = unsafe extern "C" fn(Channel, u32, i32, *mut c_void, usize) -> c_int;
pub(crate) type PostSend = unsafe extern "C" fn(Channel, u32, i32, *const c_void, usize) -> c_int;
pub(crate) type TestReceive = unsafe extern "C" fn(Channel, u32, *mut Arrival) -> c_int;
pub(crate) type OfSlot = unsafe extern "C" fn(Channel, u32) -> c_int;
pub(crate) type Block = unsafe extern "C" fn(Channel, u64) -> c_int;
pub(crate) type Close = unsafe extern "C" fn(Channel) -> c_int;
pub(crate) type Request = unsafe extern "C" fn(Channel, i32, usize, usize) -> c_int;
pub(crate) type TakeReply = unsafe extern "C" fn(Channel, *mut i32) -> c_int;
pub(crate) type Answer = unsafe extern "C" fn(Channel) -> c_int;
pub(crate) type Register = unsafe extern "C" fn(Channel, *mut c_void, usize) -> Region;
pub(crate) type Allocate = unsafe extern "C" fn(Channel, usize, *mut *mut c_void) -> Region;
pub(crate) type Deregister = unsafe extern "C" fn(Channel, Region) -> c_int;
pub(crate) type WriteKey = unsafe extern "C" fn(Channel, Region, *mut c_void, usize) -> c_int;
pub(crate) type OfTransfer = unsafe extern "C" fn(Channel, u32, *const Transfer) -> c_int;
pub(crate) type FetchAdd = unsafe extern "C" fn(Channel, u32, *const Transfer, u64) -> c_int;
pub(crate) type OfRank = unsafe extern "C" fn(Channel, i32) -> c_int;

#[repr(C)]
pub(crate) struct Layer {
    pub(crate) version: u32,
    pub(crate) size: u32,
    pub(crate) capabilities: u64,
    pub(crate) name: *const c_char,
    pub(crate) open: Option<Open>,
    pub(crate) describe: Option<Describe>,
    pub(crate) address: Option<WriteAddress>,
    pub(crate) connect: Option<Connect>,
    pub(crate) gather: Option<Gather>,
    pub(crate) post_receive: Option<PostReceive>,
    pub(crate) post_send: Option<PostSend>,
    pub(crate) test_receive: Option<TestReceive>,
    pub(crate) test_send: Option<OfSlot>,
    pub(crate) cancel_receive: Option<OfSlot>,
    pub(crate) block: Option<Block>,
    pub(crate) close: Option<Close>,
    pub(crate) request: Option<Request>,
    pub(crate) take_reply: Option<TakeReply>,
    pub(crate) answer: Option<Answer>,
    pub(crate) register_memory: Option<Register>,
    pub(crate) deregister_memory: Option<Deregister>,
    pub(crate) key: Option<WriteKey>,
    pub(crate) put: Option<OfTransfer>,
    pub(crate) get: Option<OfTransfer>,
    pub(crate) flush: Option<OfRank>,
    pub(crate) fetch_add: Option<FetchAdd>,
    pub(crate) open_epoch: Option<OfRank>,
    pub(crate) close_epoch: Option<OfRank>,
    pub(crate) expose: Option<OfRank>,
    pub(crate) allocate_memory: Option<Allocate>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::source::HEADER;
    use std::fmt::Write;
    use std::mem::{offset_of, size_of};
    use std::process::Command;

    /// Lines of the form "expression value", and a C program that prints the same lines from the header.
    struct Comparison {
        ours: String,
        program: String,
    }

    impl Comparison {
        fn number(&mut self, what: &str, number: u64) {
            writeln!(self.ours, "{what} {number}").unwrap();
            writeln!(self.program, "printf(\"{what} %llu\\n\", (unsigned long long)({what}));").unwrap();
        }
    }

    macro_rules! compare {
        ($comparison:ident, $rust:ty, $c:literal, $($member:ident)*) => {
            $comparison.number(concat!("sizeof(struct ", $c, ")"), size_of::<$rust>() as u64);
            $($comparison.number(
                concat!("offsetof(struct ", $c, ", ", stringify!($member), ")"),
                offset_of!($rust, $member) as u64,
            );)*
        };
    }

    #[test]
    fn the_structures_are_those_of_the_header() {
        let mut c = Comparison { ours: String::new(), program: String::new() };
        compare!(c, Options, "netdyno_options", size slots largest rank ranks settings error uses);
        compare!(c, Address, "netdyno_address", bytes length);
        compare!(c, Arrival, "netdyno_arrival", bytes rank reserved);
        compare!(c, Transfer, "netdyno_transfer", region offset key key_offset bytes rank reserved);
        compare!(c, Layer, "netdyno_layer", version size capabilities name open describe address connect
            gather post_receive post_send test_receive test_send cancel_receive block close
            request take_reply answer register_memory deregister_memory key put get flush
            fetch_add open_epoch close_epoch expose allocate_memory);
        c.number("NETDYNO_LAYER_VERSION", u64::from(VERSION));
        c.number("NETDYNO_TEXT_BYTES", TEXT_BYTES as u64);
        c.number("NETDYNO_ANY_RANK", ANY_RANK as u64);
        c.number("NETDYNO_HAS_LAUNCHER", HAS_LAUNCHER);
        c.number("NETDYNO_GATHERS", GATHERS);
        c.number("NETDYNO_BLOCKS", BLOCKS);
        c.number("NETDYNO_REQUESTS", REQUESTS);
        c.number("NETDYNO_REGISTERS", REGISTERS);
        c.number("NETDYNO_ONE_SIDED", ONE_SIDED);
        c.number("NETDYNO_FETCH_ADD", FETCH_ADD);
        c.number("NETDYNO_FENCE", FENCE);
        c.number("NETDYNO_POST", POST);
        c.number("NETDYNO_ALLOCATES", ALLOCATES);

        let folder = tempfile::tempdir().unwrap();
        let (file, built) = (folder.path().join("sizes.c"), folder.path().join("sizes"));
        std::fs::write(folder.path().join("layer.h"), HEADER).unwrap();
        let program = format!(
            "#include \"layer.h\"\n#include <stdio.h>\nint main(void)\n{{\n{}return 0;\n}}\n",
            c.program
        );
        std::fs::write(&file, program).unwrap();
        let compiled = Command::new("cc").arg("-o").args([&built, &file]).status();
        assert!(compiled.expect("a C compiler, cc").success());
        let theirs = Command::new(built).output().unwrap().stdout;
        assert_eq!(String::from_utf8(theirs).unwrap(), c.ours);
    }
}
