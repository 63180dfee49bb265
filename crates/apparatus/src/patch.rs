//! Copies of libfabric's tables of functions, in which the hook replaces some functions.
//!
//! A libfabric object points to tables of functions. The hook makes it point to a copy instead. A pointer
//! in front of each copy leads from the object to the hook's state of it:
//!
//! ```text
//! object.ops ──┐
//!              ▼
//! [ state ][ size, close, bind, … as many bytes as the provider's table says it has ]
//! ```

use rustc_hash::{FxBuildHasher, FxHashMap};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes in front of a copy: room for the pointer, at the strictest alignment.
const FRONT: usize = 16;

/// The addresses and sizes of all copies. They tell whether a table is one of them.
static COPIES: Mutex<FxHashMap<usize, usize>> = Mutex::new(FxHashMap::with_hasher(FxBuildHasher));

fn copies() -> MutexGuard<'static, FxHashMap<usize, usize>> {
    COPIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(FRONT + size, FRONT).expect("a table is small")
}

/// Returns whether the table is a copy.
pub fn is_ours<T>(table: *const T) -> bool {
    copies().contains_key(&table.addr())
}

/// Copies a table and changes the copy. Returns the table itself if there is no memory.
///
/// # Safety
/// The table is one of libfabric's, whose first word is its size in bytes. `T` is a prefix of the table,
/// or a later version with more members at the end. A null member may be all zero.
pub unsafe fn copy<T: Copy, S>(table: *mut T, state: NonNull<S>, change: impl FnOnce(&mut T)) -> *mut T {
    // SAFETY: the table has as many bytes as its first word says. The copy has room for these and for a
    // `T`, zeroed where the table is shorter, and in front of it for the state.
    unsafe {
        let size = *table.cast::<usize>();
        let room = size.max(size_of::<T>());
        let front = alloc_zeroed(layout(room));
        if front.is_null() {
            return table;
        }
        front.cast::<NonNull<S>>().write(state);
        let copy = front.add(FRONT);
        ptr::copy_nonoverlapping(table.cast::<u8>(), copy, size);
        change(&mut *copy.cast::<T>());
        copies().insert(copy.addr(), room);
        copy.cast()
    }
}

/// Returns the state in front of a copy, as it was passed to [`copy`].
///
/// # Safety
/// The table is a copy that was made with a state of type `S`.
#[inline(always)]
pub unsafe fn state<T, S>(table: *const T) -> NonNull<S> {
    // SAFETY: in front of the table of a copy stands a pointer to a state of type `S`.
    unsafe { table.cast::<u8>().sub(FRONT).cast::<NonNull<S>>().read() }
}

/// Frees a table, if it is a copy.
///
/// # Safety
/// Nothing uses the copy any more.
pub unsafe fn free<T>(table: *const T) {
    let room = copies().remove(&table.addr());
    if let Some(room) = room {
        // SAFETY: `copy` allocated so many bytes from `FRONT` before the table on, and nothing uses them
        // any more.
        unsafe { dealloc(table.cast::<u8>().cast_mut().sub(FRONT), layout(room)) };
    }
}

/// Replaces the functions that the provider has. A function that the provider lacks stays null.
#[macro_export]
#[doc(hidden)]
macro_rules! replace {
    ($table:expr, $($member:ident => $ours:path),* $(,)?) => {
        $(if $table.$member.is_some() { $table.$member = Some($ours); })*
    };
}

/// Calls a function of the provider through a pointer to its table. The table of an older library may be
/// shorter than ours, so the macro makes no reference to it.
macro_rules! call {
    ($table:ident.$member:ident($($argument:expr),* $(,)?)) => {
        match (*$table).$member {
            Some(theirs) => theirs($($argument),*),
            None => $crate::guard::Answer::MISSING,
        }
    };
}
pub(crate) use call;

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Table {
        size: usize,
        one: Option<extern "C" fn() -> i32>,
        two: Option<extern "C" fn() -> i32>,
    }

    extern "C" fn theirs() -> i32 {
        1
    }

    extern "C" fn ours() -> i32 {
        2
    }

    #[test]
    fn a_copy_leads_back_and_keeps_what_is_not_changed() {
        // The table of an older library, which ends before `two`, and the table of a newer one.
        let (short, long) =
            ([16, theirs as *const () as usize], [40, theirs as *const () as usize, 0, 77, 78]);
        for table in [&short[..], &long[..]] {
            let state = NonNull::from(Box::leak(Box::new(String::from("of the object"))));
            // SAFETY: both tables begin with their size.
            let copy = unsafe {
                copy(table.as_ptr().cast_mut().cast::<Table>(), state, |copy| {
                    replace!(copy, one => ours, two => ours);
                })
            };
            assert!(is_ours(copy) && !is_ours(table.as_ptr()));
            // SAFETY: the table was copied just now, with a state of that type.
            unsafe {
                assert_eq!(super::state::<_, String>(copy), state);
                assert_eq!((*copy).one.map(|call| call()), Some(2));
                assert!((*copy).two.is_none(), "what the provider lacks is not made up");
                let words = std::slice::from_raw_parts(copy.cast::<usize>(), table.len());
                assert_eq!(words[2..], table[2..]);
                free(copy);
                assert_eq!(*Box::from_raw(state.as_ptr()), "of the object");
            }
            assert!(!is_ours(copy));
        }
    }
}
