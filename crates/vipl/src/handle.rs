//! Handles that programs hold. A handle is a pointer that is never followed. It encodes its kind, its NIC
//! and the provider's own handle, so any value that a program passes can be checked safely.
//!
//! ```text
//! 63      56 55              40 39   32 31                               0
//!    kind        generation       slot      the provider's own handle
//! ```
//!
//! The kind is chosen so that no handle is a valid address of a process.

use crate::nic::id::NicId;
use netdyno_stack::vi::{ConnHandle, CqHandle, Ptag, ReturnCode, ViHandle};
use std::ffi::c_void;
use std::ptr;

/// A pointer that the program gets from the library and passes back.
pub type Opaque = *mut c_void;

const _: () = assert!(usize::BITS == 64, "handles need 64 bits");

const NIC: u8 = 0xd1;
const VI: u8 = 0xd2;
const CQ: u8 = 0xd3;
const PTAG: u8 = 0xd4;
const CONN: u8 = 0xd5;

fn spell(kind: u8, NicId { slot, generation }: NicId, own: u32) -> Opaque {
    let word = u64::from(kind) << 56 | u64::from(generation) << 40 | u64::from(slot) << 32 | u64::from(own);
    ptr::without_provenance_mut(word as usize)
}

fn read(kind: u8, handle: Opaque) -> Option<(NicId, u32)> {
    let word = handle.addr() as u64;
    let nic = NicId { slot: (word >> 32) as u8, generation: (word >> 40) as u16 };
    ((word >> 56) as u8 == kind).then_some((nic, word as u32))
}

/// An object of a NIC that programs hold handles of.
pub trait Handled: Copy {
    /// The return code for a handle that is not one of this kind.
    const REFUSAL: ReturnCode = ReturnCode::InvalidParameter;
    /// The kind in the handle.
    const KIND: u8;

    /// Returns the provider's own handle.
    fn own(self) -> u32;

    /// Makes the object from the provider's own handle.
    fn of_own(own: u32) -> Self;

    /// Returns the handle for the program.
    fn give(self, nic: NicId) -> Opaque {
        spell(Self::KIND, nic, self.own())
    }

    /// Reads a handle that the program passed. Returns the object with its NIC. The caller finds out
    /// whether both exist.
    fn take(handle: Opaque) -> Result<(NicId, Self), ReturnCode> {
        let (nic, own) = read(Self::KIND, handle).ok_or(Self::REFUSAL)?;
        Ok((nic, Self::of_own(own)))
    }

    /// Reads a handle of an object that must be on the given NIC.
    fn take_of(nic: NicId, handle: Opaque) -> Result<Self, ReturnCode> {
        let (of, thing) = Self::take(handle)?;
        if of == nic { Ok(thing) } else { Err(Self::REFUSAL) }
    }

    /// Reads an optional handle of an object on the given NIC. NULL means none.
    fn take_any_of(nic: NicId, handle: Opaque) -> Result<Option<Self>, ReturnCode> {
        if handle.is_null() { Ok(None) } else { Self::take_of(nic, handle).map(Some) }
    }
}

macro_rules! handled {
    ($($thing:ident $kind:ident $(refused $refusal:ident)?;)*) => {$(
        impl Handled for $thing {
            $(const REFUSAL: ReturnCode = ReturnCode::$refusal;)?
            const KIND: u8 = $kind;

            fn own(self) -> u32 {
                self.0
            }

            fn of_own(own: u32) -> Self {
                Self(own)
            }
        }
    )*};
}

handled! {
    ViHandle VI;
    CqHandle CQ;
    ConnHandle CONN;
    Ptag PTAG refused InvalidPtag;
}

impl NicId {
    /// Returns the handle for the program.
    pub fn give(self) -> Opaque {
        spell(NIC, self, 0)
    }

    /// Reads a handle that the program passed.
    pub fn take(handle: Opaque) -> Result<Self, ReturnCode> {
        match read(NIC, handle) {
            Some((nic, 0)) => Ok(nic),
            _ => Err(ReturnCode::InvalidParameter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_handle_comes_back_as_what_it_is_and_as_nothing_else(slot: u8, generation: u16, own: u32) {
            let nic = NicId { slot, generation };
            let handle = ViHandle(own).give(nic);
            prop_assert_eq!(ViHandle::take(handle), Ok((nic, ViHandle(own))));
            prop_assert_eq!(CqHandle::take(handle), Err(ReturnCode::InvalidParameter));
            prop_assert_eq!(Ptag::take(handle), Err(ReturnCode::InvalidPtag));
            prop_assert_eq!(NicId::take(handle), Err(ReturnCode::InvalidParameter));
            prop_assert_eq!(NicId::take(nic.give()), Ok(nic));
            let other = NicId { slot: slot ^ 1, generation };
            prop_assert_eq!(ViHandle::take_of(other, handle), Err(ReturnCode::InvalidParameter));
        }

        /// Addresses of a process have zeros in the top byte.
        #[test]
        fn no_pointer_of_a_process_is_a_handle(address in 0..1_usize << 56) {
            let pointer = ptr::without_provenance_mut(address);
            prop_assert_eq!(ViHandle::take(pointer), Err(ReturnCode::InvalidParameter));
            prop_assert_eq!(NicId::take(pointer), Err(ReturnCode::InvalidParameter));
        }
    }

    #[test]
    fn null_is_no_completion_queue_and_nothing_else_is() {
        let nic = NicId { slot: 1, generation: 2 };
        assert_eq!(CqHandle::take_any_of(nic, ptr::null_mut()), Ok(None));
        let handle = CqHandle(3).give(nic);
        assert_eq!(CqHandle::take_any_of(nic, handle), Ok(Some(CqHandle(3))));
        assert_eq!(CqHandle::take_any_of(nic, nic.give()), Err(ReturnCode::InvalidParameter));
    }
}
