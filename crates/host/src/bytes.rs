//! Memory that other threads and processes may write at any time. No code gets a reference to it: data is
//! copied in and copied out.
//!
//! A copy that overlaps a concurrent write returns a mixture of old and new bytes. The race is no undefined
//! behaviour, because every copy uses relaxed atomic bytes.

use crate::copy::{
    FLAG, copy, copy_in_order, copy_slice, copy_slice_in_order, copy_to_slice, load_word, store_in_order,
};
use crate::pages::page_bytes;
use crate::region::{CONTROL_BYTES, Region};
use crate::segment::{NONCE_LEN, Segment, SegmentError, open_segment};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A range of concurrently accessed bytes, together with the owner of its memory.
#[derive(Debug)]
pub struct Bytes {
    base: NonNull<u8>,
    len: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// A segment that this process created. The bytes follow its control block.
    Made(Segment),
    /// A segment that another process created. The bytes follow its control block.
    Opened(Region),
    /// Heap memory of this process, freed when `Bytes` is dropped.
    Boxed,
    /// Memory of this process that the caller owns.
    Lent,
}

// SAFETY: memory belongs to the process, not to a thread. `Bytes` owns it, or the caller of `lent` has
// promised that it stays valid.
unsafe impl Send for Bytes {}
// SAFETY: concurrent threads read and write by copies of atomic bytes, which may race.
unsafe impl Sync for Bytes {}

/// Returns the size in bytes of the control block in front of the bytes of a segment. It is a whole number of
/// pages, so that the bytes can be withdrawn without it. All processes of a host use one page size.
fn control_bytes() -> usize {
    page_bytes().max(CONTROL_BYTES)
}

impl Bytes {
    /// Creates zeroed bytes in a new segment.
    ///
    /// # Errors
    /// Returns `SegmentError` if the system refuses the memory.
    pub fn in_segment(len: usize) -> Result<Self, SegmentError> {
        let control = control_bytes();
        let segment = Segment::create(control + len)?;
        Ok(Self { base: segment.region.at(control, len), len, owner: Owner::Made(segment) })
    }

    /// Opens the bytes that another process created in a segment.
    ///
    /// # Errors
    /// Returns `SegmentError` if process `pid` has no such segment.
    pub fn of_segment(pid: u32, fd: u32, nonce: [u8; NONCE_LEN], len: usize) -> Result<Self, SegmentError> {
        let control = control_bytes();
        let region = open_segment(pid, fd, nonce, control + len)?;
        Ok(Self { base: region.at(control, len), len, owner: Owner::Opened(region) })
    }

    /// Takes ownership of heap memory of this process.
    pub fn of_box(bytes: Box<[u8]>) -> Self {
        let len = bytes.len();
        let base = NonNull::from(Box::leak(bytes)).cast();
        Self { base, len, owner: Owner::Boxed }
    }

    /// Wraps memory of this process that the caller keeps.
    ///
    /// # Safety
    /// The `len` bytes from `base` on must stay readable and writable while this value lives. Meanwhile no
    /// code holds a reference to them, and other threads access them by atomics only.
    pub unsafe fn lent(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len, owner: Owner::Lent }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the segment if this process created one.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.owner {
            Owner::Made(segment) => Some(segment),
            _ => None,
        }
    }

    /// Returns a word of the segment's control block, or `None` if there is no segment.
    pub fn word(&self, offset: usize) -> Option<&AtomicU64> {
        match &self.owner {
            Owner::Made(segment) => Some(segment.region.word(offset)),
            Owner::Opened(region) => Some(region.word(offset)),
            Owner::Boxed | Owner::Lent => None,
        }
    }

    /// Copies `from` to `offset`. The last 8 bytes become visible after all others, in order.
    ///
    /// # Panics
    /// Panics if `from` does not fit: the caller must have checked.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let at = self.at(offset, from.len());
        // SAFETY: `at` checked the range. No code holds a reference to these bytes, and all access is by
        // atomic copies.
        unsafe { copy_slice_in_order(from, at.as_ptr()) };
    }

    /// Copies the bytes at `offset` to `into`.
    ///
    /// # Panics
    /// Panics if there are fewer bytes than `into` holds: the caller must have checked.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let at = self.at(offset, into.len());
        // SAFETY: `at` checked the range, and all access to it is by atomic copies. `into` is borrowed
        // exclusively.
        unsafe { copy_to_slice(at.as_ptr(), into) };
    }

    /// Returns the little-endian words from `offset` on. Each is read when the iterator comes to it.
    ///
    /// # Panics
    /// Panics if there are fewer words: the caller must have checked.
    #[inline]
    pub fn words(&self, offset: usize, words: usize) -> impl ExactSizeIterator<Item = u64> + '_ {
        let first = self.at(offset, words.saturating_mul(8));
        // SAFETY: `at` checked the range, which is borrowed, and all access to it is by atomic copies.
        (0..words).map(move |nth| u64::from_le_bytes(unsafe { load_word(first.add(8 * nth).as_ptr()) }))
    }

    /// Copies `len` bytes from `offset` to offset `at` of `to`.
    ///
    /// # Panics
    /// Panics if either range ends too early: the caller must have checked.
    #[inline]
    pub fn copy(&self, offset: usize, to: &Self, at: usize, len: usize) {
        let (from, to) = (self.at(offset, len), to.at(at, len));
        // SAFETY: `at` checked both ranges. They may overlap, and all access to them is by atomic copies.
        unsafe { copy(from.as_ptr(), to.as_ptr(), len) };
    }

    /// Returns the address of byte `offset` in this process.
    ///
    /// # Panics
    /// Panics if fewer than `len` bytes follow: the caller must have checked.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "bytes that are not there");
        // SAFETY: the offset is inside the range, or just behind its last byte.
        unsafe { self.base.add(offset) }
    }

    /// Removes the bytes from the reach of other processes, without their cooperation. This process keeps the
    /// present contents at the same address. A concurrent write by another thread may be lost.
    ///
    /// # Errors
    /// Returns `SegmentError` if the system has no memory for the private copy.
    pub fn withdraw(&self) -> Result<(), SegmentError> {
        match &self.owner {
            Owner::Made(segment) => segment.withdraw(control_bytes()),
            // Other processes cannot reach these bytes.
            Owner::Opened(_) | Owner::Boxed | Owner::Lent => Ok(()),
        }
    }

    /// Returns the pages of the bytes to the system, although other processes may map them. To be called by the owner of
    /// the last handle, because the contents are lost.
    pub fn give_back(&self) {
        if let Owner::Made(segment) = &self.owner {
            segment.give_back(control_bytes());
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Owner::Boxed = self.owner {
            let bytes = NonNull::slice_from_raw_parts(self.base, self.len);
            // SAFETY: this is the allocation that `of_box` leaked, and it is freed only here.
            drop(unsafe { Box::from_raw(bytes.as_ptr()) });
        }
    }
}

/// A range of memory that the caller keeps, used for one copy in or out.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: memory belongs to the process, not to a thread. The caller of `new` has promised that it stays
// valid.
unsafe impl Send for Stretch {}

impl Stretch {
    /// Describes the `len` bytes from `base` on.
    ///
    /// # Safety
    /// The bytes must stay readable and writable while this value or a copy of it is used. Meanwhile no code
    /// holds a reference to them, and no other thread accesses them. One exception is allowed: a thread may
    /// wait by atomics for the last 8 bytes that are written.
    pub const unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len }
    }

    /// Returns the number of bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the range is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the same bytes as a source of copies.
    #[inline(always)]
    pub const fn readable(&self) -> Readable<'_> {
        Readable { base: self.base, len: self.len, kept: PhantomData }
    }

    /// Splits the range into its first `at` bytes and the remainder.
    ///
    /// # Panics
    /// Panics if there are fewer than `at` bytes: the caller must have checked.
    #[inline]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let (first, rest) = self.readable().split_at(at);
        (Self { base: first.base, len: first.len }, Self { base: rest.base, len: rest.len })
    }

    /// Copies `from` to the range. The last 8 bytes become visible after all others, in order.
    ///
    /// # Panics
    /// Panics if `from` does not fit: the caller must have checked.
    #[inline]
    pub fn write(&self, from: &[u8]) {
        assert!(from.len() <= self.len, "bytes that are not there");
        // SAFETY: the range is long enough, and the caller of `new` has promised that it is writable.
        unsafe { copy_slice_in_order(from, self.base.as_ptr()) };
    }

    /// Copies the bytes into little-endian words. Bytes of `words` behind them keep their values.
    ///
    /// # Panics
    /// Panics if the bytes do not fit into `words`: the caller must have checked.
    #[inline(always)]
    pub fn to_words(&self, words: &mut [u64]) {
        let (whole, rest) = (self.len / 8, self.len % 8);
        // Copies word by word, because a load of a word stalls when a wider store has just written it.
        for (at, word) in words[..whole].iter_mut().enumerate() {
            // SAFETY: inside the range, and bytes need no alignment.
            *word = u64::from_le_bytes(unsafe { self.base.add(8 * at).cast::<[u8; 8]>().read() });
        }
        if rest > 0 {
            let mut last = words[whole].to_le_bytes();
            // SAFETY: `rest` bytes are left, which is fewer than a word has.
            unsafe { copy(self.base.add(8 * whole).as_ptr(), last.as_mut_ptr(), rest) };
            words[whole] = u64::from_le_bytes(last);
        }
    }

    /// Fills the range from little-endian words. The last 8 bytes become visible after all others, in order.
    ///
    /// # Panics
    /// Panics if `words` has fewer bytes than the range: the caller must have checked.
    #[inline(always)]
    pub fn fill_from_words(&self, words: &[u64]) {
        let (whole, rest) = (self.len / FLAG, self.len % FLAG);
        // SAFETY: all uses below pass offsets inside the range.
        let at = |offset| unsafe { self.base.add(offset) };
        if whole == 0 {
            let bytes = words.first().map_or([0; FLAG], |word| word.to_le_bytes());
            // SAFETY: this is the whole range, which is shorter than a word.
            return unsafe { store_in_order(self.base.as_ptr(), &bytes[..rest]) };
        }
        for (nth, word) in words[..whole - 1].iter().enumerate() {
            // SAFETY: inside the range, and bytes need no alignment.
            unsafe { at(FLAG * nth).cast::<[u8; FLAG]>().write(word.to_le_bytes()) };
        }
        let mut last = words[whole - 1];
        if rest > 0 {
            // SAFETY: inside the range, and shorter than a word.
            unsafe { copy_slice(&last.to_le_bytes()[..rest], at(FLAG * (whole - 1)).as_ptr()) };
            last = last >> (8 * rest) | words[whole] << (8 * (FLAG - rest));
        }
        // SAFETY: these are the last 8 bytes of the range.
        unsafe { store_in_order(at(self.len - FLAG).as_ptr(), &last.to_le_bytes()) };
    }
}

/// Bytes that can be copied from during the lifetime `'a`. This value never writes them.
///
/// It does not outlive their owner:
///
/// ```compile_fail,E0597
/// use netdyno_host::bytes::Readable;
/// let readable = {
///     let mut bytes = [0; 8];
///     Readable::of(&mut bytes)
/// };
/// assert_eq!(readable.len(), 8);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a> {
    base: NonNull<u8>,
    len: usize,
    kept: PhantomData<&'a [u8]>,
}

impl<'a> Readable<'a> {
    /// Describes the bytes of a slice.
    pub const fn of(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        Self { base: NonNull::from_mut(bytes).cast(), len, kept: PhantomData }
    }

    /// Describes the `len` bytes from `base` on.
    ///
    /// # Safety
    /// The bytes must stay readable during `'a`. Meanwhile no code holds a reference to them, and other
    /// threads access them by atomics only.
    pub(crate) const unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len, kept: PhantomData }
    }

    /// Returns the number of bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the range is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Splits the range into its first `at` bytes and the remainder.
    ///
    /// # Panics
    /// Panics if there are fewer than `at` bytes: the caller must have checked.
    #[inline]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        assert!(at <= self.len, "bytes that are not there");
        // SAFETY: the address is inside the range, or just behind its last byte.
        let behind = unsafe { self.base.add(at) };
        (Self { len: at, ..self }, Self { base: behind, len: self.len - at, ..self })
    }

    /// Appends a copy of the bytes to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len);
        // SAFETY: the creator of this value has promised that its bytes are readable. `out` has reserved
        // space for them, and its length grows only after they are copied.
        unsafe {
            copy(self.base.as_ptr(), out.as_mut_ptr().add(out.len()), self.len);
            out.set_len(out.len() + self.len);
        }
    }

    /// Fills `into` with the first bytes of the range.
    ///
    /// # Panics
    /// Panics if there are fewer bytes than `into` holds: the caller must have checked.
    #[inline]
    pub fn read(&self, into: &mut [u8]) {
        assert!(into.len() <= self.len, "bytes that are not there");
        // SAFETY: the creator of this value has promised that its bytes are readable. `into` is borrowed
        // exclusively.
        unsafe { copy(self.base.as_ptr(), into.as_mut_ptr(), into.len()) };
    }

    /// Copies all bytes to shared memory at `to`.
    ///
    /// # Safety
    /// `to` must be writable for as many bytes. Other threads access them by atomic copies and by atomics
    /// only.
    #[inline]
    pub(crate) unsafe fn copy_out(&self, to: NonNull<u8>) {
        // SAFETY: the creator of this value has promised that the source is readable. The caller has promised
        // that the target is writable.
        unsafe { copy(self.base.as_ptr(), to.as_ptr(), self.len) };
    }

    /// Fills `to` with the first bytes of the range. The last 8 bytes become visible after all others, in
    /// order.
    ///
    /// # Panics
    /// Panics if there are fewer bytes than `to` holds: the caller must have checked.
    #[inline]
    pub fn copy_to(&self, to: &Stretch) {
        assert!(to.len <= self.len, "bytes that are not there");
        // SAFETY: the creators of the two values have promised that these bytes are readable here and
        // writable there.
        unsafe { copy_in_order(self.base.as_ptr(), to.base.as_ptr(), to.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(not(miri))]
    use crate::pages::pretended::with_pages_of;

    fn contents(bytes: &Bytes) -> Vec<u8> {
        let mut found = vec![0; bytes.len()];
        bytes.read(0, &mut found);
        found
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = Bytes::of_box(vec![1; 6].into());
        bytes.write(2, &[7, 8]);
        bytes.write(6, &[]);
        assert_eq!(contents(&bytes), [1, 1, 7, 8, 1, 1]);
        let other = Bytes::of_box(vec![0; 4].into());
        bytes.copy(1, &other, 1, 3);
        assert_eq!(contents(&other), [0, 1, 7, 8]);
        bytes.copy(0, &bytes, 2, 4);
        assert_eq!(contents(&bytes), [1, 1, 1, 1, 7, 8]);
    }

    #[test]
    fn words_are_read_from_any_offset() {
        let bytes = Bytes::of_box((0..40).collect());
        for offset in 0..8 {
            let words: Vec<u64> = bytes.words(offset, 4).collect();
            let expected: Vec<u8> = (offset as u8..).take(32).collect();
            assert_eq!(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>(), expected);
        }
        assert_eq!(bytes.words(40, 0).len(), 0);
    }

    #[test]
    fn bytes_go_into_words_and_out_of_them() {
        for len in 0..=24 {
            let mut from: Vec<u8> = (1..=24).collect();
            let mut to = vec![0xff; 25];
            // SAFETY: each range is used before any other access to its bytes.
            let stretch = |bytes: &mut [u8]| unsafe { Stretch::new(NonNull::from(bytes).cast(), len) };
            let mut words = [u64::MAX; 4];
            stretch(&mut from).to_words(&mut words);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert!(bytes[..len] == from[..len] && bytes[len..].iter().all(|byte| *byte == 0xff));
            stretch(&mut to).fill_from_words(&words);
            assert!(to[..len] == from[..len] && to[len..].iter().all(|byte| *byte == 0xff), "{len} bytes");
        }
    }

    #[test]
    #[should_panic(expected = "not there")]
    fn nothing_is_written_beyond_the_end() {
        Bytes::of_box(vec![0; 8].into()).write(7, &[1, 2]);
    }

    #[test]
    #[should_panic(expected = "not there")]
    fn offsets_do_not_overflow() {
        Bytes::of_box(vec![0; 8].into()).read(usize::MAX, &mut [0, 0]);
    }

    /// Safe code may race like this. Under Miri the test shows that the race is no undefined behaviour.
    #[test]
    fn threads_may_write_and_read_the_same_bytes_at_once() {
        let bytes = &Bytes::of_box(vec![0; 40].into());
        let rounds = if cfg!(miri) { 3 } else { 10_000 };
        std::thread::scope(|scope| {
            for value in [1, 2] {
                scope.spawn(move || (0..rounds).for_each(|at| bytes.write(at % 8, &[value; 30])));
            }
            for _ in 0..rounds {
                assert!(contents(bytes).iter().all(|byte| *byte <= 2));
                bytes.copy(0, bytes, 20, 20);
            }
        });
    }

    /// Withdrawing replaces whole pages, but never the control block.
    #[cfg(not(miri))]
    #[test]
    fn the_bytes_of_a_segment_begin_at_a_page_whatever_its_size() {
        for page in [page_bytes(), 64 << 10] {
            with_pages_of(page, || {
                let made = Bytes::in_segment(10).unwrap();
                let segment = made.segment().unwrap();
                assert_eq!((segment.region.len(), segment.region.at(page, 0)), (2 * page, made.base));
                let pid = std::process::id();
                let theirs = Bytes::of_segment(pid, segment.descriptor(), segment.nonce(), 10).unwrap();
                theirs.write(0, &[1; 10]);
                made.withdraw().unwrap();
                assert_eq!(contents(&made), [1; 10]);
            });
        }
    }

    #[cfg(not(miri))]
    #[test]
    fn withdrawn_bytes_stay_and_are_reached_by_nobody() {
        for len in [0, 1, 4096, 10_000] {
            let made = Bytes::in_segment(len).unwrap();
            let segment = made.segment().unwrap();
            let pid = std::process::id();
            let theirs = Bytes::of_segment(pid, segment.descriptor(), segment.nonce(), len).unwrap();
            theirs.write(0, &vec![1; len]);
            made.withdraw().unwrap();
            theirs.write(0, &vec![2; len]);
            assert_eq!(contents(&made), vec![1; len]);
            made.write(0, &vec![3; len]);
            assert_eq!(contents(&made), vec![3; len]);
            assert_eq!(contents(&theirs), vec![2; len]);
            // The first page stays shared.
            made.word(64).unwrap().store(5, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(theirs.word(64).unwrap().load(std::sync::atomic::Ordering::Relaxed), 5);
        }
    }
}
