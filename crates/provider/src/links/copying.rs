//! Copies between the memories of two processes on a host, by the system (process_vm_readv(2)): one copy, where shared
//! memory takes two.

use super::identity::Process;
use crate::engine::Copied;
use crate::memory::{Memory, Segment};
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::io::{IoSlice, IoSliceMut};
use std::ptr;
use std::slice;

/// Most bytes in one call. The system copies at most 2 GiB less a page.
const AT_ONCE: usize = 1 << 30;

/// Returns whether this process may read the memory of another, and the other is the one it says it is.
pub fn is_allowed(process: &Process) -> bool {
    let mut nonce = [0; 16];
    let there = [RemoteIoVec { base: process.proof as usize, len: nonce.len() }];
    let read =
        process_vm_readv(Pid::from_raw(process.pid as i32), &mut [IoSliceMut::new(&mut nonce)], &there);
    read == Ok(nonce.len()) && nonce == process.nonce
}

/// Copies bytes out of the memory of another process.
pub fn pull(pid: u32, from: &[Segment], to: &Memory) -> Copied {
    copy(from, to, |there, here| {
        // SAFETY: the memory is writable, as the caller of `Memory::new` has promised, and nobody else uses it while its
        // operation is not complete.
        let here = unsafe { slice::from_raw_parts_mut(pointer(here.address), here.len as usize) };
        process_vm_readv(Pid::from_raw(pid as i32), &mut [IoSliceMut::new(here)], &[there])
    })
}

/// Copies bytes into the memory of another process.
pub fn push(pid: u32, from: &Memory, to: &[Segment]) -> Copied {
    copy(to, from, |there, here| {
        // SAFETY: the memory is readable, as the caller of `Memory::new` has promised.
        let here = unsafe { slice::from_raw_parts(pointer(here.address), here.len as usize) };
        process_vm_writev(Pid::from_raw(pid as i32), &[IoSlice::new(here)], &[there])
    })
}

fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Copies all bytes of `ours`, a part at a time, where both sides are contiguous.
fn copy(
    theirs: &[Segment],
    ours: &Memory,
    mut copy_part: impl FnMut(RemoteIoVec, Segment) -> nix::Result<usize>,
) -> Copied {
    let mut theirs = theirs.iter().copied().filter(|segment| segment.len > 0);
    let mut there = Segment { address: 0, len: 0 };
    for &segment in ours.segments() {
        let mut here = segment;
        while here.len > 0 {
            if there.len == 0 {
                let Some(next) = theirs.next() else { return Copied::Failed };
                there = next;
            }
            let len = here.len.min(there.len).min(AT_ONCE as u64);
            let remote = RemoteIoVec { base: there.address as usize, len: len as usize };
            match copy_part(remote, Segment { len, ..here }) {
                Ok(copied) if copied > 0 => {
                    here = Segment { address: here.address + copied as u64, len: here.len - copied as u64 };
                    there =
                        Segment { address: there.address + copied as u64, len: there.len - copied as u64 };
                }
                Err(Errno::ESRCH) => return Copied::Ended,
                // What was permitted before is no more.
                Err(Errno::EPERM | Errno::ENOSYS) => return Copied::NotHere,
                Ok(_) | Err(_) => return Copied::Failed,
            }
        }
    }
    Copied::Whole
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    fn segment(bytes: &[u8]) -> Segment {
        Segment { address: bytes.as_ptr().expose_provenance() as u64, len: bytes.len() as u64 }
    }

    #[test]
    fn bytes_are_copied_between_unequal_segments() {
        let pid = std::process::id();
        let from: Vec<u8> = (0..100).collect();
        let mut to = vec![0; 70];
        let [a, b] = to.split_at_mut(33).into();
        // SAFETY: the memory outlives the copy, and nobody else uses it.
        let memory = unsafe { Memory::new([segment(a), segment(b)]) };
        assert_eq!(
            pull(pid, &[segment(&from[..50]), segment(&[]), segment(&from[50..])], &memory),
            Copied::Whole
        );
        assert_eq!(to, from[..70]);
        let mut back = [0; 80];
        let there = [segment(&back[..7]), segment(&back[7..])];
        assert_eq!(push(pid, &memory, &there), Copied::Whole);
        back[70] += 1;
        assert_eq!((&back[..70], back[70]), (&from[..70], 1));
    }

    #[test]
    fn memory_that_is_not_there_fails() {
        let to = [0; 8];
        // SAFETY: the memory outlives the copy, and nobody else uses it.
        let memory = unsafe { Memory::new([segment(&to)]) };
        assert_eq!(pull(std::process::id(), &[Segment { address: 8, len: 8 }], &memory), Copied::Failed);
        assert_eq!(pull(std::process::id(), &[segment(&[1; 4])], &memory), Copied::Failed);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        assert_eq!(pull(ended.id(), &[segment(&[1; 8])], &memory), Copied::Ended);
    }

    /// A process may forbid others to read its memory when copies have begun (prctl(2), PR_SET_DUMPABLE).
    #[test]
    fn what_the_system_forbids_travels_in_messages() {
        let bytes = [0; 8];
        // SAFETY: the memory outlives the call, which does not use it.
        let memory = unsafe { Memory::new([segment(&bytes)]) };
        let mut calls = 0;
        let copied = copy(&[segment(&bytes)], &memory, |_, _| {
            calls += 1;
            if calls == 1 { Ok(5) } else { Err(Errno::EPERM) }
        });
        assert_eq!((copied, calls), (Copied::NotHere, 2));
    }

    #[test]
    fn a_process_proves_what_it_is() {
        let nonce = [7; 16];
        let proof = nonce.as_ptr().expose_provenance() as u64;
        let process = Process { pid: std::process::id(), proof, host: [0; 8], nonce, udp: [0; 18] };
        assert!(is_allowed(&process));
        assert!(!is_allowed(&Process { nonce: [8; 16], ..process }));
        assert!(!is_allowed(&Process { pid: u32::MAX >> 1, ..process }));
    }
}
