//! Registered memory of this process. Descriptors are read and completed there; messages are read from
//! it and written to it. To the provider addresses are numbers; here they become pointers.
//!
//! No reference into such memory is ever made, because the program may write there at any time.

use netdyno_host::bytes::Stretch;
use netdyno_protocol::vi::descriptor::{CONTROL_LEN, Malformed, SHORT_LEN, STATUS_AT, View};
use netdyno_protocol::vi::{Completion, DescriptorAt, Segment, Short, Side, Work};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Offsets of the immediate data and of the length, which precede the status.
const IMMEDIATE_AT: usize = 20;
const LENGTH_AT: usize = 24;

fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Returns the bytes of a segment.
///
/// # Safety
/// The segment must be in registered memory of this process, which stays until it is deregistered.
#[inline]
pub(super) unsafe fn stretch(segment: &Segment) -> Stretch {
    let base = NonNull::new(pointer(segment.address)).unwrap_or(NonNull::dangling());
    // SAFETY: the segment is registered memory, as the caller has promised. A segment at address 0 has
    // no bytes, because nothing is registered there.
    unsafe { Stretch::new(base, segment.len as usize) }
}

/// Copies a descriptor, of which `room` bytes are registered. Returns the copy if it describes a short
/// send.
///
/// # Safety
/// `room` bytes must be readable there.
#[inline]
pub(super) unsafe fn read_short(at: DescriptorAt, room: u64) -> Option<Short> {
    if room < SHORT_LEN as u64 {
        return None;
    }
    // SAFETY: `room` bytes can be read there, as the caller has promised, and bytes need no alignment.
    let bytes: [u8; SHORT_LEN] = unsafe { pointer(at.address).cast::<[u8; SHORT_LEN]>().read() };
    View::new(&bytes).ok()?.short()
}

/// Copies a descriptor, of which `room` bytes are registered, and parses the copy. Later changes by the
/// program have no effect on the copy.
///
/// # Safety
/// `room` bytes must be readable there.
#[inline]
pub(super) unsafe fn read_descriptor(at: DescriptorAt, room: u64, side: Side) -> Result<Work, Malformed> {
    if room < SHORT_LEN as u64 {
        // SAFETY: `room` bytes can be read there, as the caller has promised.
        return unsafe { read_other(at, room, side) };
    }
    let mut short = [0; SHORT_LEN];
    // SAFETY: `room` bytes can be read there, as the caller has promised, and `room` is at least
    // `SHORT_LEN`.
    unsafe { pointer(at.address).copy_to_nonoverlapping(short.as_mut_ptr(), SHORT_LEN) };
    let view = View::new(&short)?;
    if view.whole_len()? <= SHORT_LEN {
        return view.work(side);
    }
    // SAFETY: `room` bytes can be read there, as the caller has promised. This reads the descriptor
    // anew, and only this copy counts.
    unsafe { read_other(at, room, side) }
}

/// Copies a descriptor of any length, wherever registered memory ends.
///
/// # Safety
/// `room` bytes must be readable there.
#[cold]
unsafe fn read_other(at: DescriptorAt, room: u64, side: Side) -> Result<Work, Malformed> {
    let mut control = [0; CONTROL_LEN];
    if room < CONTROL_LEN as u64 {
        return Err(Malformed::Short);
    }
    // SAFETY: `room` bytes can be read there, as the caller has promised, and `room` is at least
    // `CONTROL_LEN`.
    unsafe { pointer(at.address).copy_to_nonoverlapping(control.as_mut_ptr(), CONTROL_LEN) };
    let whole = View::new(&control)?.whole_len()?;
    if whole as u64 > room {
        return Err(Malformed::Short);
    }
    let mut bytes = vec![0; whole];
    // SAFETY: `room` bytes can be read there, as the caller has promised, and `whole` is at most `room`.
    unsafe { pointer(at.address).copy_to_nonoverlapping(bytes.as_mut_ptr(), whole) };
    // The first copy of the control segment counts, even if the program has changed it meanwhile.
    bytes[..CONTROL_LEN].copy_from_slice(&control);
    View::new(&bytes[..])?.work(side)
}

/// Returns a word of a descriptor.
///
/// # Safety
/// The word must be writable and aligned.
#[inline]
unsafe fn word<'a>(at: DescriptorAt, offset: usize) -> &'a AtomicU32 {
    // SAFETY: the word can be written, and is aligned, as the caller has promised. It is atomic, because
    // programs read these words while this side writes them.
    unsafe { AtomicU32::from_ptr(pointer(at.address).add(offset).cast()) }
}

/// Clears the status of a posted descriptor, which may still hold that of its last use. A program that
/// polls the status then sees the new completion.
///
/// # Safety
/// The control segment there must be writable and aligned.
#[inline]
pub(super) unsafe fn begin(at: DescriptorAt) {
    // SAFETY: the control segment can be written, and is aligned, as the caller has promised.
    unsafe { word(at, STATUS_AT) }.store(0, Ordering::Relaxed);
}

/// Writes a completion into a descriptor, the status last.
///
/// # Safety
/// The control segment there must be writable and aligned.
#[inline]
pub(super) unsafe fn complete(at: DescriptorAt, completion: &Completion) {
    // SAFETY: the control segment can be written, and is aligned, as the caller has promised.
    let word = |offset| unsafe { word(at, offset) };
    if let Some(immediate) = completion.immediate {
        word(IMMEDIATE_AT).store(immediate.to_le(), Ordering::Relaxed);
    }
    word(LENGTH_AT).store(completion.len.to_le(), Ordering::Relaxed);
    // Release: a program that polls the status and sees it also sees the bytes of the message.
    word(STATUS_AT).store(completion.status.0.to_le(), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_protocol::vi::{Operation, Status};

    /// Memory of a program, with a descriptor at its beginning. The test accesses it only through
    /// pointers.
    #[repr(align(64))]
    struct Memory([u8; SHORT_LEN]);

    fn work() -> Work {
        let segment = Segment { address: 64, handle: 5, len: 9 };
        let segments = [segment].into_iter().collect();
        Work { operation: Operation::Send, immediate: Some(7), is_fenced: false, segments, len: 9 }
    }

    #[test]
    fn a_descriptor_is_read_where_it_is_and_completed_there() {
        let mut memory = Memory([0; SHORT_LEN]);
        View::new(&mut memory.0[..]).unwrap().set_work(&work()).unwrap();
        let base = (&raw mut memory).cast::<u8>();
        let at = DescriptorAt { address: base.expose_provenance() as u64, handle: 0 };
        let whole = SHORT_LEN as u64;
        // SAFETY: at least `room` bytes can be read there.
        unsafe {
            assert_eq!(read_short(at, whole).map(|short| short.segment.len), Some(9));
            assert_eq!(read_short(at, whole - 1), None);
            assert_eq!(read_descriptor(at, whole, Side::Send), Ok(work()));
            assert_eq!(read_descriptor(at, (CONTROL_LEN + 16) as u64, Side::Send), Ok(work()));
            assert_eq!(read_descriptor(at, CONTROL_LEN as u64, Side::Send), Err(Malformed::Short));
            assert_eq!(read_descriptor(at, 0, Side::Send), Err(Malformed::Short));
        }
        let completion = Completion { status: Status::DONE, len: 9, immediate: Some(3) };
        // SAFETY: the memory is aligned, and longer than a control segment.
        unsafe {
            begin(at);
            complete(at, &completion);
        }
        let words = [IMMEDIATE_AT, LENGTH_AT, STATUS_AT].map(|offset| {
            // SAFETY: the word is inside of the memory, and nobody writes to it any more.
            u32::from_le_bytes(unsafe { base.add(offset).cast::<[u8; 4]>().read() })
        });
        assert_eq!(words, [3, 9, Status::DONE.0]);
    }
}
