//! Addresses of functions and variables, for other processes of the same program.
//!
//! ```text
//! 63  62        48 47                       0
//!  1    object       offset in the object        in a loaded object
//!  0    address                                  elsewhere
//! ```

use crate::calling::Function;
use crate::code::Code;
use crate::refusal::{Refusal, refuse};
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

/// Says that an object and an offset follow.
const IN_OBJECT: u64 = 1 << 63;
const OFFSET: u64 = (1 << 48) - 1;

/// A loaded object: the program or a library.
#[derive(Clone, Copy, Debug)]
struct Object {
    begin: u64,
    end: u64,
}

/// Returns the objects in the order in which they were loaded, which is the same in all processes of a program.
fn objects() -> &'static [Object] {
    static OBJECTS: OnceLock<Vec<Object>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let mut objects = Vec::new();
        // SAFETY: the function gets the vector, which no other thread has.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut objects).cast()) };
        objects
    })
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, objects: *mut c_void) -> i32 {
    crate::guard::quietly(1, || {
        // SAFETY: the system passes an object, and the vector of the caller.
        let (info, objects) = unsafe { (&*info, &mut *objects.cast::<Vec<Object>>()) };
        // SAFETY: the system says where the headers are.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let begin = loaded().map(|header| header.p_vaddr).min().unwrap_or(0);
        let end = loaded().map(|header| header.p_vaddr + header.p_memsz).max().unwrap_or(0);
        // A program that is loaded at a fixed address does not begin at 0.
        objects.push(Object { begin: info.dlpi_addr + begin, end: info.dlpi_addr + end });
        0
    })
}

/// Returns what other processes of the program understand.
pub fn encode(address: *const c_void) -> u64 {
    let address = address.addr() as u64;
    let found =
        objects().iter().enumerate().find(|(_, object)| (object.begin..object.end).contains(&address));
    match found {
        Some((nth, object)) => IN_OBJECT | (nth as u64) << 48 | (address - object.begin),
        None => address,
    }
}

/// Returns the address in this process; `None` if there is no such object or offset.
pub fn decode(place: u64) -> Option<*mut c_void> {
    let address = if place & IN_OBJECT == 0 {
        place
    } else {
        let object = objects().get(((place ^ IN_OBJECT) >> 48) as usize)?;
        let address = object.begin + (place & OFFSET);
        (address < object.end).then_some(address)?
    };
    Some(ptr::with_exposed_provenance_mut(usize::try_from(address).ok()?))
}

/// Returns the place of a function that a message calls.
///
/// # Errors
/// Returns `BadArg` if it is in no loaded object, so that the other process could not find it.
pub fn encode_function(function: *const c_void) -> Result<u64, Refusal> {
    let place = encode(function);
    if function.is_null() || place & IN_OBJECT == 0 {
        return Err(refuse(
            Code::BadArg,
            "the function is neither of the program nor of a library it has started with",
        ));
    }
    Ok(place)
}

/// Returns the place of an argument, which may be any number, and whether it is in a loaded object.
pub fn encode_argument(argument: *const c_void) -> (u64, bool) {
    let (number, place) = (argument.addr() as u64, encode(argument));
    (place, place != number)
}

/// Returns the argument at a place.
pub fn decode_argument(place: u64, is_in_object: bool) -> Option<*mut c_void> {
    if is_in_object { decode(place) } else { Some(ptr::with_exposed_provenance_mut(place as usize)) }
}

/// Returns the function at a place; `None` for NULL and for what is in no loaded object.
pub fn decode_function(place: u64) -> Option<Function> {
    let address = decode(place).filter(|_| place & IN_OBJECT != 0)?;
    Some(function(address))
}

/// Returns the function at an address.
pub fn function(address: *const c_void) -> Function {
    // SAFETY: the address is that of a function of this process. Its caller says which parameters it has.
    unsafe { std::mem::transmute::<*const c_void, Function>(address) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static VARIABLE: u8 = 7;

    #[test]
    fn an_address_comes_back() {
        let heap = Box::new(0_u8);
        let function = an_address_comes_back as *const c_void;
        for address in [(&raw const VARIABLE).cast(), (&raw const *heap).cast(), function, ptr::null()] {
            assert_eq!(decode(encode(address)).map(|address| address.cast_const()), Some(address));
        }
        assert!(encode(function) & IN_OBJECT != 0 && encode((&raw const *heap).cast()) & IN_OBJECT == 0);
        assert!(decode_function(encode(function)).is_some());
        assert!(encode_function(function).is_ok() && encode_function(ptr::null()).is_err());
        assert!(encode_function((&raw const *heap).cast()).is_err());
        assert!(decode_function(encode((&raw const *heap).cast())).is_none());
    }

    proptest! {
        #[test]
        fn every_argument_comes_back(number: usize) {
            for number in [number, number | 1 << 63, (&raw const VARIABLE).addr()] {
                let argument = ptr::without_provenance(number);
                let (place, is_in_object) = encode_argument(argument);
                prop_assert_eq!(decode_argument(place, is_in_object).map(|argument| argument.addr()), Some(number));
            }
        }

        #[test]
        fn no_place_panics(place: u64) {
            let _ = (decode(place), decode_function(place));
        }
    }
}
