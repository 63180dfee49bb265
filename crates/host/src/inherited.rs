//! Descriptors that the parent of this process left open for it.

use rustix::io::fcntl_dupfd_cloexec;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// The first number after those of the standard streams.
const FIRST: RawFd = 3;

/// Returns a copy of the descriptor with this number.
///
/// # Errors
/// Returns an I/O error if the number is that of a standard stream, or if no descriptor with this number is open.
pub fn descriptor(number: RawFd) -> io::Result<File> {
    if number < FIRST {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: the number is not -1, and the call copies the descriptor in the kernel, which returns EBADF if it
    // is not open. The borrow ends with the call.
    let copy = fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(number) }, FIRST)?;
    Ok(File::from(copy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_copy_is_a_descriptor_of_its_own() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut copy = descriptor(there.as_raw_fd()).unwrap();
        drop(there);
        here.write_all(b"x").unwrap();
        copy.read_exact(&mut [0]).unwrap();
    }

    #[test]
    fn numbers_of_no_descriptor_are_errors() {
        for number in [-1, 0, 2, 1_000_000] {
            assert!(descriptor(number).is_err(), "{number}");
        }
    }
}
