//! Bytes that other threads and processes write to while this thread looks at them: nobody is ever given a
//! reference to them, they are copied in and out.
//!
//! A copy that overlaps with a write brings some mixture of old and new bytes. It is nothing worse, because
//! every way in and out is a copy of relaxed atomic bytes.

use crate::copy::{FLAG, copy, copy_in_order, copy_slice, copy_slice_in_order, store_in_order};
use crate::pages::page_bytes;
use crate::region::{CONTROL_BYTES, Region};
use crate::segment::{NONCE_LEN, Segment, SegmentError, open_segment};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A stretch of such bytes.
#[derive(Debug)]
pub struct Bytes {
    base: NonNull<u8>,
    len: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// A segment that this process made, behind its control block.
    Made(Segment),
    /// One that another process made, behind its control block.
    Opened(Region),
    /// Memory of this process, freed with the bytes.
    Boxed,
    /// Memory of this process that somebody else keeps.
    Lent,
}

// SAFETY: memory belongs to the process, not to a thread: it is owned, or lent by a caller that has promised
// that it stays.
unsafe impl Send for Bytes {}
// SAFETY: threads that read and write at once do so by copies of atomic bytes, which may race.
unsafe impl Sync for Bytes {}

/// Bytes of the control block of a segment with bytes, in front of them: whole pages, so that the bytes can be
/// withdrawn without it. All processes of a host have pages of one size.
fn control_bytes() -> usize {
    page_bytes().max(CONTROL_BYTES)
}

impl Bytes {
    /// Zeroed bytes in a segment of their own.
    ///
    /// # Errors
    /// The system gives no such memory.
    pub fn in_segment(len: usize) -> Result<Self, SegmentError> {
        let control = control_bytes();
        let segment = Segment::create(control + len)?;
        Ok(Self { base: segment.region.at(control, len), len, owner: Owner::Made(segment) })
    }

    /// The bytes that another process has in a segment.
    ///
    /// # Errors
    /// There is no such segment.
    pub fn of_segment(pid: u32, fd: u32, nonce: [u8; NONCE_LEN], len: usize) -> Result<Self, SegmentError> {
        let control = control_bytes();
        let region = open_segment(pid, fd, nonce, control + len)?;
        Ok(Self { base: region.at(control, len), len, owner: Owner::Opened(region) })
    }

    /// Bytes of this process.
    pub fn of_box(bytes: Box<[u8]>) -> Self {
        let len = bytes.len();
        let base = NonNull::from(Box::leak(bytes)).cast();
        Self { base, len, owner: Owner::Boxed }
    }

    /// Bytes of this process that somebody else keeps.
    ///
    /// # Safety
    /// From `base` on, `len` bytes can be read and written for as long as this lives. Meanwhile nobody holds a
    /// reference to them, and other threads access them by atomics alone.
    pub unsafe fn lent(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len, owner: Owner::Lent }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The segment, where this process made one.
    pub fn segment(&self) -> Option<&Segment> {
        match &self.owner {
            Owner::Made(segment) => Some(segment),
            _ => None,
        }
    }

    /// A word of the segment's control block; `None` where there is no segment.
    pub fn word(&self, offset: usize) -> Option<&AtomicU64> {
        match &self.owner {
            Owner::Made(segment) => Some(segment.region.word(offset)),
            Owner::Opened(region) => Some(region.word(offset)),
            Owner::Boxed | Owner::Lent => None,
        }
    }

    /// Copies `from` to the bytes from `offset` on: the last 8 become visible after all others, in order.
    ///
    /// # Panics
    /// Where it does not fit: the caller has checked.
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let at = self.at(offset, from.len());
        // SAFETY: as many bytes lie there; nobody holds a reference to them, and all that access them copy.
        unsafe { copy_slice_in_order(from, at.as_ptr()) };
    }

    /// Copies the bytes from `offset` on to `into`.
    ///
    /// # Panics
    /// Where there are fewer: the caller has checked.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let at = self.at(offset, into.len());
        // SAFETY: as many bytes lie there, and all that access them copy; `into` is borrowed by nobody else.
        unsafe { copy(at.as_ptr(), into.as_mut_ptr(), into.len()) };
    }

    /// Copies `len` bytes from `offset` on to those of `to` from `at` on.
    ///
    /// # Panics
    /// Where there are fewer on either side: the caller has checked.
    #[inline]
    pub fn copy(&self, offset: usize, to: &Self, at: usize, len: usize) {
        let (from, to) = (self.at(offset, len), to.at(at, len));
        // SAFETY: as many bytes lie at both, which may be the same ones, and all that access them copy.
        unsafe { copy(from.as_ptr(), to.as_ptr(), len) };
    }

    /// Where the bytes from `offset` on lie in this process.
    ///
    /// # Panics
    /// Where there are fewer than `len`: the caller has checked.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "bytes that are not there");
        // SAFETY: the offset is inside, or just behind the last byte.
        unsafe { self.base.add(offset) }
    }

    /// Takes the bytes out of the reach of other processes, whatever those do: here they stay
    /// as they are now, at the same address. What another thread writes meanwhile may be lost.
    ///
    /// # Errors
    /// The system has no memory for them.
    pub fn withdraw(&self) -> Result<(), SegmentError> {
        match &self.owner {
            Owner::Made(segment) => segment.withdraw(control_bytes()),
            // Others do not reach them.
            Owner::Opened(_) | Owner::Boxed | Owner::Lent => Ok(()),
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Owner::Boxed = self.owner {
            let bytes = NonNull::slice_from_raw_parts(self.base, self.len);
            // SAFETY: what `of_box` leaked, once.
            drop(unsafe { Box::from_raw(bytes.as_ptr()) });
        }
    }
}

/// A stretch of memory that somebody else keeps, for one copy in or out.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: memory belongs to the process, not to a thread; the code that made the stretch has promised that it
// stays.
unsafe impl Send for Stretch {}

impl Stretch {
    /// The `len` bytes from `base` on.
    ///
    /// # Safety
    /// They can be read and written for as long as this or a copy of it is used. Meanwhile nobody holds a
    /// reference to them, and no other thread accesses them, but for one that waits by atomics for the last 8
    /// bytes of what is written.
    pub const unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len }
    }

    /// How many bytes there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same bytes, to be copied from.
    #[inline(always)]
    pub const fn readable(&self) -> Readable<'_> {
        Readable { base: self.base, len: self.len, kept: PhantomData }
    }

    /// The first `at` bytes, and the others.
    ///
    /// # Panics
    /// Where there are fewer: the caller has checked.
    #[inline]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let (first, rest) = self.readable().split_at(at);
        (Self { base: first.base, len: first.len }, Self { base: rest.base, len: rest.len })
    }

    /// Copies `from` there: the last 8 bytes become visible after all others, in order.
    ///
    /// # Panics
    /// Where it does not fit: the caller has checked.
    #[inline]
    pub fn write(&self, from: &[u8]) {
        assert!(from.len() <= self.len, "bytes that are not there");
        // SAFETY: as many bytes can be written, as `new` was promised.
        unsafe { copy_slice_in_order(from, self.base.as_ptr()) };
    }

    /// Copies the bytes into words, little endian. What is behind them stays.
    ///
    /// # Panics
    /// Where they do not fit: the caller has checked.
    #[inline(always)]
    pub fn to_words(&self, words: &mut [u64]) {
        let (whole, rest) = (self.len / 8, self.len % 8);
        // Word by word: a processor waits for a wider copy when it then reads words of it.
        for (at, word) in words[..whole].iter_mut().enumerate() {
            // SAFETY: inside, and bytes need no alignment.
            *word = u64::from_le_bytes(unsafe { self.base.add(8 * at).cast::<[u8; 8]>().read() });
        }
        if rest > 0 {
            let mut last = words[whole].to_le_bytes();
            // SAFETY: as many bytes are left, and fewer than a word has.
            unsafe { copy(self.base.add(8 * whole).as_ptr(), last.as_mut_ptr(), rest) };
            words[whole] = u64::from_le_bytes(last);
        }
    }

    /// Copies the first bytes of words there, little endian: as many as there are, the last 8 after all
    /// others, in order.
    ///
    /// # Panics
    /// Where the words have fewer: the caller has checked.
    #[inline(always)]
    pub fn fill_from_words(&self, words: &[u64]) {
        let (whole, rest) = (self.len / FLAG, self.len % FLAG);
        // SAFETY: callers ask for offsets inside.
        let at = |offset| unsafe { self.base.add(offset) };
        if whole == 0 {
            let bytes = words.first().map_or([0; FLAG], |word| word.to_le_bytes());
            // SAFETY: all that there are, fewer than a word has.
            return unsafe { store_in_order(self.base.as_ptr(), &bytes[..rest]) };
        }
        for (nth, word) in words[..whole - 1].iter().enumerate() {
            // SAFETY: inside, and bytes need no alignment.
            unsafe { at(FLAG * nth).cast::<[u8; FLAG]>().write(word.to_le_bytes()) };
        }
        let mut last = words[whole - 1];
        if rest > 0 {
            // SAFETY: inside, and fewer than a word has.
            unsafe { copy_slice(&last.to_le_bytes()[..rest], at(FLAG * (whole - 1)).as_ptr()) };
            last = last >> (8 * rest) | words[whole] << (8 * (FLAG - rest));
        }
        // SAFETY: the last bytes that there are.
        unsafe { store_in_order(at(self.len - FLAG).as_ptr(), &last.to_le_bytes()) };
    }
}

/// Bytes that can be copied from for as long as `'a` lasts, and are not written through this.
///
/// It does not outlive what keeps them:
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
    /// The bytes of a slice.
    pub const fn of(bytes: &'a mut [u8]) -> Self {
        let len = bytes.len();
        Self { base: NonNull::from_mut(bytes).cast(), len, kept: PhantomData }
    }

    /// The `len` bytes from `base` on.
    ///
    /// # Safety
    /// They can be read as long as `'a` lasts. Meanwhile nobody holds a reference to them, and other threads
    /// access them by atomics alone.
    pub(crate) const unsafe fn new(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len, kept: PhantomData }
    }

    /// How many bytes there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `at` bytes, and the others.
    ///
    /// # Panics
    /// Where there are fewer: the caller has checked.
    #[inline]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        assert!(at <= self.len, "bytes that are not there");
        // SAFETY: inside, or just behind the last byte.
        let behind = unsafe { self.base.add(at) };
        (Self { len: at, ..self }, Self { base: behind, len: self.len - at, ..self })
    }

    /// Puts a copy of the bytes behind `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len);
        // SAFETY: as many bytes can be read, as the code that made this has promised; there is room for them,
        // and they count as filled when they are.
        unsafe {
            copy(self.base.as_ptr(), out.as_mut_ptr().add(out.len()), self.len);
            out.set_len(out.len() + self.len);
        }
    }

    /// Copies the first bytes to `into`, which has no more than there are.
    ///
    /// # Panics
    /// Where there are fewer: the caller has checked.
    #[inline]
    pub fn read(&self, into: &mut [u8]) {
        assert!(into.len() <= self.len, "bytes that are not there");
        // SAFETY: as many bytes can be read, as the code that made this has promised; `into` is borrowed by
        // nobody else.
        unsafe { copy(self.base.as_ptr(), into.as_mut_ptr(), into.len()) };
    }

    /// Copies all of them to where others may access them.
    ///
    /// # Safety
    /// As many bytes can be written at `to`, and other threads access them by such copies and by atomics alone.
    #[inline]
    pub(crate) unsafe fn copy_out(&self, to: NonNull<u8>) {
        // SAFETY: as many bytes can be read, as the code that made this has promised, and be written, as the
        // caller has.
        unsafe { copy(self.base.as_ptr(), to.as_ptr(), self.len) };
    }

    /// Copies as many bytes to `to` as that has: the last 8 become visible after all others, in order.
    ///
    /// # Panics
    /// Where there are fewer: the caller has checked.
    #[inline]
    pub fn copy_to(&self, to: &Stretch) {
        assert!(to.len <= self.len, "bytes that are not there");
        // SAFETY: as many bytes can be read here and written there, as the code that made the two has promised.
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
    fn bytes_go_into_words_and_out_of_them() {
        for len in 0..=24 {
            let mut from: Vec<u8> = (1..=24).collect();
            let mut to = vec![0xff; 25];
            // SAFETY: used before anybody else looks at them.
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

    /// Safe code may do this: under Miri it is the test that such a race is no undefined behaviour.
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

    /// Withdrawing replaces whole pages, and not the control block.
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
            // The first page goes on being shared.
            made.word(64).unwrap().store(5, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(theirs.word(64).unwrap().load(std::sync::atomic::Ordering::Relaxed), 5);
        }
    }
}
