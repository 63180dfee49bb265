//! Copies of bytes that other threads or processes may access meanwhile. One copy is as fast wherever the
//! bytes lie, and whichever process wrote them last. A reader may wait for the end of the other.
//!
//! For the language each byte is loaded and stored by itself, as a relaxed atomic. A copy that races with
//! another access therefore brings some mixture of old and new bytes, and is never undefined behaviour.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// From more bytes than this on, `memmove` may leave the copying to one instruction of the
/// processor, `rep movsb`.
const SHORT: usize = 2048;
/// From so many on it does not, on the processors that are slow at it.
const LONG: usize = 1 << 20;
/// Copied at a time in between. Shorter ones cost as many calls more, longer ones are slower
/// as well where bytes lie badly.
const PIECE: usize = 512;

/// Copies `len` bytes, which may overlap, and which others may access.
///
/// With `rep movsb` AMD's processors copy at a tenth to a twentieth of their speed where the
/// bytes are in the cache of another one (a stage of 64 KiB cells: 2.5 instead of 31 GB/s),
/// and where the target lies 1 to 15 bytes behind the source modulo a page (4 instead of 55).
/// What other processes write is mostly of the first kind. So it is copied in pieces that are
/// too short for that instruction; where it is fast they take a twentieth longer.
///
/// # Safety
/// `from` can be read and `to` written, each for `len` bytes, from pointers that allow writing. Other
/// threads access these bytes by such copies and by atomics alone.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both can be accessed for `len` bytes, and all access them so, as the caller has promised.
    unsafe { copy_from::<true>(from, to, len) };
}

/// Copies bytes of this thread's to where others may access them.
///
/// # Safety
/// As many bytes can be written at `to`, and lie apart from `from`. Other threads access them by such copies
/// and by atomics alone.
#[inline]
pub(crate) unsafe fn copy_slice(from: &[u8], to: *mut u8) {
    // SAFETY: so many bytes can be written at `to`, as the caller has promised; nobody writes to `from` as long as it
    // is borrowed.
    unsafe { copy_from::<false>(from.as_ptr(), to, from.len()) };
}

/// # Safety
/// As for [`copy`]; `from` need not allow writing where nobody else writes there (`SHARED` is false).
#[inline]
unsafe fn copy_from<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    let is_apart = to.addr().abs_diff(from.addr()) >= len;
    if SHORT < len && len < LONG && is_apart {
        // SAFETY: both can be accessed for `len` bytes, as the caller has promised, and do not overlap.
        unsafe { copy_in_pieces::<SHARED>(from, to, len) };
    } else {
        // SAFETY: both can be accessed for `len` bytes, as the caller has promised.
        unsafe { copy_bytes::<SHARED>(from, to, len) };
    }
}

/// # Safety
/// As for [`copy_from`], and the bytes do not overlap.
#[inline(never)]
unsafe fn copy_in_pieces<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    for at in (0..len).step_by(PIECE) {
        let piece = PIECE.min(len - at);
        // SAFETY: the piece is inside of what the caller may copy.
        unsafe { copy_bytes::<SHARED>(from.add(at), to.add(at), piece) };
    }
}

/// Has the C library's `memmove` copy the bytes.
///
/// The compiler takes a plain call for an access that nothing races with. It does not know which function
/// this one calls, so that the call may be one of a function that copies byte by byte, with a relaxed atomic
/// load and store of each; the instructions of `memmove` do no less.
///
/// # Safety
/// As for [`copy_from`].
#[cfg(all(target_arch = "x86_64", not(any(miri, netdyno_tsan))))]
#[inline(always)]
unsafe fn copy_bytes<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both can be accessed for `len` bytes, as the caller has promised and `memmove` asks for; the call
    // follows the C ABI, and writes to the registers alone that the ABI lets it.
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

/// Has the C library's `memmove` copy the bytes, in a call that the compiler does not look into: as on x86-64.
///
/// # Safety
/// As for [`copy_from`].
#[cfg(all(target_arch = "aarch64", not(any(miri, netdyno_tsan))))]
#[inline(always)]
unsafe fn copy_bytes<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both can be accessed for `len` bytes, as the caller has promised and `memmove` asks for; the call
    // follows the C ABI, and writes to the registers alone that the ABI lets it.
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

/// The same in the language itself: for other processors, and for tools that look at each access.
///
/// # Safety
/// As for [`copy_from`].
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(any(miri, netdyno_tsan)))))]
unsafe fn copy_bytes<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    let copy_byte = |at: usize| {
        // SAFETY: inside of what the caller may copy. Where others write to `from`, it allows writing, which a
        // reference to an atomic asks for; where nobody does, a plain read races with nothing.
        unsafe {
            let byte = if SHARED {
                AtomicU8::from_ptr(from.add(at).cast_mut()).load(Ordering::Relaxed)
            } else {
                from.add(at).read()
            };
            AtomicU8::from_ptr(to.add(at)).store(byte, Ordering::Relaxed);
        }
    };
    // Bytes that overlap are read before they are written over.
    if to.addr() <= from.addr() { (0..len).for_each(copy_byte) } else { (0..len).rev().for_each(copy_byte) }
}

/// Bytes that are stored after all others of a copy in order.
pub(crate) const FLAG: usize = 8;

/// Copies `len` bytes in an order that a reader can rely on. A reader that sees any of the last 8 bytes
/// sees all before those 8 as well, and of the 8 those in front of it. So it may wait for the last byte and
/// then take the rest. (`memmove` stores the end of a copy before the middle of it.)
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(crate) unsafe fn copy_in_order(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both can be accessed for `len` bytes, and all access them so, as the caller has promised.
    unsafe { copy_from_in_order::<true>(from, to, len) };
}

/// Copies bytes of this thread's in the order of [`copy_in_order`].
///
/// # Safety
/// As for [`copy_slice`].
#[inline]
pub(crate) unsafe fn copy_slice_in_order(from: &[u8], to: *mut u8) {
    // SAFETY: so many bytes can be written at `to`, as the caller has promised; nobody writes to `from` as long as it
    // is borrowed.
    unsafe { copy_from_in_order::<false>(from.as_ptr(), to, from.len()) };
}

/// # Safety
/// As for [`copy_from`].
#[inline]
unsafe fn copy_from_in_order<const SHARED: bool>(from: *const u8, to: *mut u8, len: usize) {
    let before = len.saturating_sub(FLAG);
    let mut last = [0; FLAG];
    let last = &mut last[..len - before];
    // SAFETY: both can be accessed for `len` bytes, as the caller has promised. The last bytes are read first, for
    // the others may be copied over them.
    unsafe {
        copy_bytes::<SHARED>(from.add(before), last.as_mut_ptr(), last.len());
        copy_from::<SHARED>(from, to, before);
        store_in_order(to.add(before), last);
    }
}

/// Stores up to 8 bytes after all that was stored before, and each after the one in front of it. Those of
/// an aligned word become visible together.
///
/// # Safety
/// So many bytes can be written there.
#[inline(always)]
pub(crate) unsafe fn store_in_order(to: *mut u8, bytes: &[u8]) {
    // Tools that look at each access want bytes that are loaded one by one to be stored one by one.
    if !cfg!(any(miri, netdyno_tsan))
        && to.addr().is_multiple_of(FLAG)
        && let Ok(word) = bytes.try_into()
    {
        // SAFETY: a word can be written there, as the caller has promised, and is aligned. Release: pairs with
        // whatever the reader waits with.
        unsafe { AtomicU64::from_ptr(to.cast()) }.store(u64::from_ne_bytes(word), Ordering::Release);
    } else {
        // SAFETY: so many bytes can be written there, as the caller has promised.
        unsafe { store_bytes_in_order(to, bytes) };
    }
}

/// # Safety
/// As for [`store_in_order`].
#[inline(never)]
unsafe fn store_bytes_in_order(to: *mut u8, bytes: &[u8]) {
    for (at, &byte) in bytes.iter().enumerate() {
        // SAFETY: so many bytes can be written from `to` on, as the caller has promised.
        unsafe { AtomicU8::from_ptr(to.add(at)) }.store(byte, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::LINE;
    use netdyno_protocol::sim::random::Random;
    use std::ptr::with_exposed_provenance_mut;

    type Copy = unsafe fn(*const u8, *mut u8, usize);

    /// Any distance, overlapping or not.
    fn arrive_wherever_they_lie(copy: Copy) {
        let lens = if cfg!(miri) { vec![3, 2060] } else { vec![0, 1, 7, 8, 9, 2048, 2049, 2560, 9001] };
        let distances: &[usize] = if cfg!(miri) {
            &[1, 2100]
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
                    // SAFETY: both are inside.
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

    /// Spins, and lets others have the processor now and then.
    #[cfg(not(miri))]
    fn wait_until(is_so: impl Fn() -> bool) {
        for look in 1_u32.. {
            if is_so() {
                return;
            }
            if look.is_multiple_of(256) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }

    /// A reader that waits for one of the last 8 bytes, and then looks at all in front of it.
    #[cfg(not(miri))]
    #[test]
    fn no_byte_is_seen_before_those_in_front_of_it() {
        const LONGEST: usize = 3000;
        const ROUNDS: u64 = 100_000;
        let seed = u64::from_ne_bytes(crate::random::bytes().unwrap());
        let mut memory = vec![0_u8; LINE + LONGEST];
        let base = memory.as_mut_ptr().expose_provenance();
        // What a round copies, and the byte that is waited for: the same for both.
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
                    // SAFETY: inside of the memory, which both threads look at by atomics alone.
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
                // SAFETY: inside, and the other thread waits.
                unsafe { to.write_bytes(0, len) };
                begun.fetch_add(1, Ordering::Release);
                // SAFETY: inside of the memory, which both threads look at by atomics alone.
                unsafe { copy_slice_in_order(&ones[..len], to) };
                wait_until(|| looked.load(Ordering::Acquire) > nth as u64);
            }
        });
        assert_eq!(early.into_inner(), 0, "of {ROUNDS} copies, with seed {seed}");
    }
}
