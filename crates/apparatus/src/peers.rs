//! The rank and host at each address. Each process writes a file into the folder of the run before its
//! peers can know its address. The file is named by the address and holds rank and host.

use crate::abi::{Address, Av, Ep, Fid, Opaque};
use crate::between::Who;
use core::ffi::c_int;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum length of an address, in bytes.
const MOST_BYTES: usize = 100;
/// The prefix of the file names.
const PREFIX: &str = "at-";

fn path(folder: &Path, address: &[u8]) -> PathBuf {
    let mut name = PREFIX.to_owned();
    bare(address).iter().for_each(|byte| {
        let _ = write!(name, "{byte:02x}");
    });
    folder.join(name)
}

/// Strips an address that is text of its scheme (`fi_shm://`) and its trailing zeros, because some
/// functions of libfabric include them and others do not.
fn bare(address: &[u8]) -> &[u8] {
    let kind = address.windows(3).position(|part| part == b"://").map_or(0, |at| at + 3);
    let end = address.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &address[kind.min(end)..end]
}

/// Writes the file for an address.
pub fn announce(folder: &Path, address: &[u8], who: &Who) -> io::Result<()> {
    let rank = who.rank.map_or(String::new(), |rank| rank.to_string());
    fs::write(path(folder, address), format!("{rank} {}", who.host))
}

/// Returns the process at an address, if it has written its file.
pub fn find(folder: &Path, address: &[u8]) -> Option<Who> {
    let said = fs::read_to_string(path(folder, address)).ok()?;
    let (rank, host) = said.split_once(' ')?;
    Some(Who { rank: rank.parse().ok(), host: host.to_owned() })
}

/// Returns the address of an enabled endpoint.
///
/// # Safety
/// The endpoint is live.
pub unsafe fn own_address(ep: *mut Ep) -> Option<Vec<u8>> {
    // SAFETY: the caller says that the endpoint is live, and so is its table.
    let getname = unsafe { (*ep).cm.as_ref() }?.getname?;
    // SAFETY: the endpoint is live, and there is room for as many bytes as `length` says.
    written(|address, length| unsafe { getname(ep.cast::<Fid>(), address, length) })
}

/// Returns the address of an entry of an address vector.
///
/// # Safety
/// The address vector is live.
pub unsafe fn address_of(av: *mut Av, to: Address) -> Option<Vec<u8>> {
    // SAFETY: the caller says that the vector is live, and so is its table.
    let lookup = unsafe { (*(*av).ops).lookup }?;
    // SAFETY: the vector is live, and there is room for as many bytes as `length` says.
    written(|address, length| unsafe { lookup(av, to, address, length) })
}

/// Returns the address that a function of libfabric writes.
fn written(write: impl FnOnce(Opaque, *mut usize) -> c_int) -> Option<Vec<u8>> {
    let (mut address, mut length) = ([0u8; MOST_BYTES], MOST_BYTES);
    let result = write(address.as_mut_ptr().cast(), &raw mut length);
    address.get(..length).filter(|_| result == 0).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "writes files")]
    fn who_has_said_where_it_is_is_found_there() {
        let folder = tempfile::tempdir().unwrap();
        let who = Who { rank: Some(3), host: "node1".into() };
        announce(folder.path(), &[2, 0, 255], &who).unwrap();
        announce(folder.path(), b"fi_shm://1234", &Who::default()).unwrap();
        assert_eq!(find(folder.path(), &[2, 0, 255]), Some(who));
        for spelled in [&b"fi_shm://1234"[..], b"1234", b"1234\0"] {
            assert_eq!(find(folder.path(), spelled), Some(Who::default()));
        }
        assert_eq!(find(folder.path(), &[2, 0]), None);
    }
}
