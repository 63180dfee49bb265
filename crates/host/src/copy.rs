//! Copies of bytes that other threads or processes may access concurrently. The speed of a copy does not
//! depend on the position of the bytes or on the process that wrote them last. An ordered copy lets a reader
//! wait for its last bytes.
//!
//! In the language's memory model each byte is loaded and stored by a relaxed atomic access. A copy that
//! races with another access therefore gets a mixture of old and new bytes, and is never undefined behaviour.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Above this length in bytes, `memmove` may use the processor's `rep movsb` instruction.
const SHORT: usize = 2048;
/// From this length in bytes on, `memmove` avoids `rep movsb` on the processors that are slow at it. An ordered copy of
/// 1 MiB leaves its last bytes to a copy of their own.
const LONG: usize = (1 << 20) - FLAG;
/// Size in bytes of one `memmove` call between `SHORT` and `LONG`. Shorter pieces cost more calls, and longer
/// ones are slower too at unfavourable positions of source and target.
const PIECE: usize = 512;

/// Copies `len` bytes, which may overlap and which others may access.
///
/// AMD processors execute `rep movsb` at a tenth to a twentieth of their usual speed in two cases:
///
/// * The bytes are in another processor's cache: a stage of 64 KiB cells reached 2.5 instead of 31 GB/s.
/// * The target lies 1 to 15 bytes behind the source modulo a page: 4 instead of 55 GB/s.
///
/// Data from other processes is mostly of the first kind. The function therefore copies in pieces too short
/// for that instruction. On processors with a fast `rep movsb` the pieces take a twentieth longer.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes, and both pointers must allow writing. Other
/// threads access these bytes by such copies and by atomics only.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller has promised that both are accessible for `len` bytes, and only by atomic accesses.
    unsafe { copy_from::<true>(from, to, len) };
}

/// Copies bytes of this thread to shared memory.
///
/// # Safety
/// `to` must be writable for as many bytes, which do not overlap `from`. Other threads access them by such
/// copies and by atomics only.
#[inline]
pub(crate) unsafe fn copy_slice(from: &[u8], to: *mut u8) {
    // SAFETY: the caller has promised that the target is writable. The source is borrowed, so that no other
    // code writes to it.
    unsafe { copy_from::<false>(from.as_ptr(), to, from.len()) };
}

/// Copies bytes of shared memory to this thread.
///
/// # Safety
/// `from` must be readable for as many bytes, which do not overlap `to`. Other threads access them by such copies and by
/// atomics only.
#[inline]
pub(crate) unsafe fn copy_to_slice(from: *const u8, to: &mut [u8]) {
    if is_word(from)
        && let Ok(word) = <&mut [u8; FLAG]>::try_from(&mut *to)
    {
        // SAFETY: the caller has promised that a word can be read there.
        *word = unsafe { load_word(from) };
    } else {
        // SAFETY: the caller has promised that the source is readable. The target is borrowed exclusively.
        unsafe { copy(from, to.as_mut_ptr(), to.len()) };
    }
}

/// Returns the bytes of a word of shared memory, at any address.
///
/// # Safety
/// `from` must be readable for a word. Other threads access it by such copies and by atomics only.
#[inline(always)]
pub(crate) unsafe fn load_word(from: *const u8) -> [u8; FLAG] {
    if is_word(from) {
        // SAFETY: the caller has promised that a word can be read there, and it is aligned.
        unsafe { AtomicU64::from_ptr(from.cast_mut().cast()) }.load(Ordering::Relaxed).to_ne_bytes()
    } else {
        // SAFETY: the caller has promised that a word can be read there.
        unsafe { load_bytes(from) }
    }
}

/// Loads the bytes of a word one by one. It is a call, so that a loop that never makes it needs no memory for the bytes.
///
/// # Safety
/// As for [`load_word`].
#[inline(never)]
unsafe fn load_bytes(from: *const u8) -> [u8; FLAG] {
    let mut bytes = [0; FLAG];
    // SAFETY: the caller has promised that the source is readable. The target is borrowed exclusively.
    unsafe { copy(from, bytes.as_mut_ptr(), FLAG) };
    bytes
}

/// Reports whether the bytes at an address can be loaded as a word. Tools that check each access require that bytes stored
/// one by one are also loaded one by one.
fn is_word(from: *const u8) -> bool {
    !cfg!(any(miri, netdyno_tsan)) && from.addr().is_multiple_of(FLAG)
}

/// # Safety
/// As for [`copy`]. `from` need not allow writing if no other code writes there (`SHARED` is false).
#[inline]
unsafe fn copy_from<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    let is_apart = to.addr().abs_diff(from.addr()) >= len;
    if SHORT < len && len < LONG && is_apart {
        // SAFETY: the caller has promised that both are accessible for `len` bytes. They do not overlap.
        unsafe { copy_in_pieces::<SHARED>(from, to, len) };
    } else {
        // SAFETY: the caller has promised that both are accessible for `len` bytes.
        unsafe { copy_bytes::<SHARED>(from, to, len) };
    }
}

/// # Safety
/// As for [`copy_from`]. The two ranges must not overlap.
#[inline(never)]
unsafe fn copy_in_pieces<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    for at in (0..len).step_by(PIECE) {
        let piece = PIECE.min(len - at);
        // SAFETY: the piece lies inside the ranges of the caller.
        unsafe { copy_bytes::<SHARED>(from.add(at), to.add(at), piece) };
    }
}

/// Copies the bytes by the C library's `memmove`.
///
/// The compiler would treat a plain call as an access without races. With assembly it does not know which
/// function is called. The callee could copy each byte by a relaxed atomic load and store. The instructions
/// of `memmove` do at least as much.
///
/// # Safety
/// As for [`copy_from`].
#[cfg(all(target_arch = "x86_64", not(any(miri, netdyno_tsan))))]
#[inline(always)]
unsafe fn copy_bytes<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller has promised that both are accessible for `len` bytes, as `memmove` requires. The
    // call follows the C ABI and changes only registers that the ABI lets a callee change.
    unsafe {
        std::arch::asm!(
            "call {memmove}",
            memmove = in(reg) memmove as Memmove,
            inout("rdi") to => _,
            inout("rsi") from => _,
            inout("rdx") len => _,
            clobber_abi("C"),
        );
    }
}

/// Copies the bytes by the C library's `memmove`, in a call that is opaque to the compiler, as on x86-64.
///
/// # Safety
/// As for [`copy_from`].
#[cfg(all(target_arch = "aarch64", not(any(miri, netdyno_tsan))))]
#[inline(always)]
unsafe fn copy_bytes<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller has promised that both are accessible for `len` bytes, as `memmove` requires. The
    // call follows the C ABI and changes only registers that the ABI lets a callee change.
    unsafe {
        std::arch::asm!(
            "blr {memmove}",
            memmove = in(reg) memmove as Memmove,
            inout("x0") to => _,
            inout("x1") from => _,
            inout("x2") len => _,
            clobber_abi("C"),
        );
    }
}

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(any(miri, netdyno_tsan))))]
type Memmove =
    unsafe extern "C" fn(*mut std::ffi::c_void, *const std::ffi::c_void, usize) -> *mut std::ffi::c_void;

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(any(miri, netdyno_tsan))))]
unsafe extern "C" {
    fn memmove(to: *mut std::ffi::c_void, from: *const std::ffi::c_void, len: usize)
    -> *mut std::ffi::c_void;
}

/// Copies the bytes in Rust: on other processors, and under tools that check each access.
///
/// # Safety
/// As for [`copy_from`].
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(any(miri, netdyno_tsan)))))]
unsafe fn copy_bytes<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    let copy_byte = |at: usize| {
        // SAFETY: inside the ranges of the caller. If others write to `from`, it allows writing, which a
        // reference to an atomic requires. If no other code writes there, a plain read cannot race.
        unsafe {
            let byte = if SHARED {
                AtomicU8::from_ptr(from.add(at).cast_mut()).load(Ordering::Relaxed)
            } else {
                from.add(at).read()
            };
            AtomicU8::from_ptr(to.add(at)).store(byte, Ordering::Relaxed);
        }
    };
    // The direction makes sure that overlapping bytes are read before they are overwritten.
    if to.addr() <= from.addr() { (0..len).for_each(copy_byte) } else { (0..len).rev().for_each(copy_byte) }
}

/// Number of bytes at the end of an ordered copy that are stored after all others, in order.
pub(crate) const FLAG: usize = 8;

/// Copies `len` bytes in an order that a reader can rely on. A reader that sees any of the last 8 bytes also
/// sees all bytes in front of that one. It may therefore wait for the last byte and then read the others. A
/// plain `memmove` does not allow this, because it stores the end of a copy before the middle.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(crate) unsafe fn copy_in_order(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller has promised that both are accessible for `len` bytes, and only by atomic accesses.
    unsafe { copy_from_in_order::<true>(from, to, len) };
}

/// Copies bytes of this thread in the order of [`copy_in_order`].
///
/// # Safety
/// As for [`copy_slice`].
#[inline]
pub(crate) unsafe fn copy_slice_in_order(from: &[u8], to: *mut u8) {
    if from.len() == FLAG {
        // A word is frequent, and needs no copy of a length that the compiler does not know.
        // SAFETY: the caller has promised that the target is writable.
        return unsafe { store_in_order(to, from) };
    }
    // SAFETY: the caller has promised that the target is writable. The source is borrowed, so that no other
    // code writes to it.
    unsafe { copy_from_in_order::<false>(from.as_ptr(), to, from.len()) };
}

/// # Safety
/// As for [`copy_from`].
#[inline]
unsafe fn copy_from_in_order<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    let before = len.saturating_sub(FLAG);
    let mut last = [0; FLAG];
    let last = &mut last[..len - before];
    // SAFETY: the caller has promised that both are accessible for `len` bytes. The last bytes are read
    // first, because the copy of the others may overwrite them.
    unsafe {
        copy_bytes::<SHARED>(from.add(before), last.as_mut_ptr(), last.len());
        copy_from::<SHARED>(from, to, before);
        store_in_order(to.add(before), last);
    }
}

/// Stores up to 8 bytes after all earlier stores, in ascending order. The bytes of an aligned word become
/// visible together.
///
/// # Safety
/// `to` must be writable for `bytes.len()` bytes.
#[inline(always)]
pub(crate) unsafe fn store_in_order(to: *mut u8, bytes: &[u8]) {
    // Tools that check each access require that bytes loaded one by one are also stored one by one.
    if !cfg!(any(miri, netdyno_tsan))
        && to.addr().is_multiple_of(FLAG)
        && let Ok(word) = bytes.try_into()
    {
        // SAFETY: the caller has promised that a word can be written there, and it is aligned. Release: pairs
        // with the acquire of a reader that waits for these bytes.
        unsafe { AtomicU64::from_ptr(to.cast()) }.store(u64::from_ne_bytes(word), Ordering::Release);
    } else {
        // SAFETY: the caller has promised that the bytes can be written there.
        unsafe { store_bytes_in_order(to, bytes) };
    }
}

/// # Safety
/// As for [`store_in_order`].
#[inline(never)]
unsafe fn store_bytes_in_order(to: *mut u8, bytes: &[u8]) {
    for (at, &byte) in bytes.iter().enumerate() {
        // SAFETY: the caller has promised that the bytes from `to` on can be written.
        unsafe { AtomicU8::from_ptr(to.add(at)) }.store(byte, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::LINE;
    use netdyno_protocol::random::Random;
    use std::ptr::with_exposed_provenance_mut;

    type Copy = unsafe fn(*const u8, *mut u8, usize);

    /// Copies at many distances, overlapping or not.
    fn arrive_wherever_they_lie(copy: Copy) {
        let lens = if cfg!(miri) { vec![3, 2060] } else { vec![0, 1, 7, 8, 9, 2048, 2049, 2560, 9001] };
        let distances: &[usize] = if cfg!(miri) {
            &[0, 1, 63, 2100]
        } else {
            &[0, 1, 16, 63, 64, 4000, 4096, 4097, 4112, 4159, 4160, 8200, 12_300]
        };
        for len in lens {
            for &distance in distances {
                for (from, to) in [(0, distance), (distance, 0)] {
                    let mut bytes: Vec<u8> = (0..=distance + len).map(|n| (n % 251) as u8).collect();
                    let mut expected = bytes.clone();
                    expected.copy_within(from..from + len, to);
                    let base = bytes.as_mut_ptr();
                    // SAFETY: both ranges are inside `bytes`.
                    unsafe { copy(base.add(from), base.add(to), len) };
                    assert!(bytes == expected, "{len} bytes from {from} to {to}");
                }
            }
        }
    }

    #[test]
    fn the_bytes_arrive_wherever_they_lie() {
        arrive_wherever_they_lie(copy);
        arrive_wherever_they_lie(copy_in_order);
    }

    /// Spins, and yields the processor at times.
    #[cfg(not(miri))]
    fn wait_until(is_so: impl Fn() -> bool) {
        for look in 1_u32.. {
            if is_so() {
                return;
            }
            if look.is_multiple_of(256) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// A reader waits for one of the last 8 bytes, and then checks all bytes in front of it.
    #[cfg(not(miri))]
    #[test]
    fn no_byte_is_seen_before_those_in_front_of_it() {
        const LONGEST: usize = 3000;
        const ROUNDS: u64 = 100_000;
        let seed = u64::from_ne_bytes(crate::random::bytes().unwrap());
        let mut memory = vec![0_u8; LINE + LONGEST];
        let base = memory.as_mut_ptr().expose_provenance();
        // The range that a round copies, and the byte that the reader waits for. Both threads draw the same
        // values.
        let draw = (1..=ROUNDS).scan(Random::new(seed), |random, _| {
            let len = 1 + random.below(LONGEST as u64) as usize;
            let (offset, back) = (random.below(LINE as u64) as usize, random.below(len.min(FLAG) as u64));
            Some((base + offset, len, len - 1 - back as usize))
        });
        let rounds = draw.clone();
        let [begun, looked, early] = [const { AtomicU64::new(0) }; 3];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (nth, (base, _, flag)) in draw.enumerate() {
                    // SAFETY: inside the memory, which both threads access by atomics only.
                    let byte = |nth| unsafe { AtomicU8::from_ptr(with_exposed_provenance_mut(base + nth)) };
                    wait_until(|| begun.load(Ordering::Acquire) > nth as u64);
                    wait_until(|| byte(flag).load(Ordering::Acquire) == 1);
                    let is_early = (0..flag).any(|nth| byte(nth).load(Ordering::Relaxed) != 1);
                    early.fetch_add(u64::from(is_early), Ordering::Relaxed);
                    looked.fetch_add(1, Ordering::Release);
                }
            });
            let ones = vec![1; LONGEST];
            for (nth, (base, len, _)) in rounds.enumerate() {
                let to = with_exposed_provenance_mut::<u8>(base);
                // SAFETY: inside the memory, and the other thread waits.
                unsafe { to.write_bytes(0, len) };
                begun.fetch_add(1, Ordering::Release);
                // SAFETY: inside the memory, which both threads access by atomics only.
                unsafe { copy_slice_in_order(&ones[..len], to) };
                wait_until(|| looked.load(Ordering::Acquire) > nth as u64);
            }
        });
        assert_eq!(early.into_inner(), 0, "of {ROUNDS} copies, with seed {seed}");
    }
}
