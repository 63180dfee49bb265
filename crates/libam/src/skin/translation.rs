//! The translation table.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::endpoint::answer_with;
use crate::code::Code;
use crate::guard::{Out, answer, check_initialized, index};
use crate::name::Name;
use crate::objects::{Endpoint, MOST_TRANSLATIONS};
use crate::refusal::{NOTHING_TO_TELL, Refusal, refuse};
use std::ffi::c_int;

/// Reads a name that the program points to.
///
/// # Safety
/// The pointer is NULL or points to a name.
unsafe fn name_at(pointer: *const Name) -> Result<Name, Refusal> {
    if pointer.is_null() {
        return Err(refuse(Code::BadArg, "the name is NULL"));
    }
    // SAFETY: the caller says so; the pointer need not be aligned.
    Ok(unsafe { pointer.read_unaligned() })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_Map(endpoint: *const Endpoint, at: c_int, name: *const Name, tag: u64) -> c_int {
    answer_with("AM_Map", endpoint, |endpoint| {
        // SAFETY: the headers pass the address of a name.
        endpoint.map(index(at)?, unsafe { name_at(name) }?, tag)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_MapAny(
    endpoint: *const Endpoint,
    at: *mut c_int,
    name: *const Name,
    tag: u64,
) -> c_int {
    answer_with("AM_MapAny", endpoint, |endpoint| {
        let at = Out::new(at)?;
        let free = endpoint.free_entry()?;
        // SAFETY: the headers pass the address of a name.
        endpoint.map(free, unsafe { name_at(name) }?, tag)?;
        // SAFETY: the program has room for an index there.
        unsafe { at.put(free as c_int) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_UnMap(endpoint: *const Endpoint, at: c_int) -> c_int {
    answer_with("AM_UnMap", endpoint, |endpoint| endpoint.unmap(index(at)?))
}

/// Returns `AM_ERR_RESOURCE` for an entry that is not in use. That is an answer, so that nothing is printed.
#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetTranslationInuse(endpoint: *const Endpoint, at: c_int) -> c_int {
    answer_with("AM_GetTranslationInuse", endpoint, |endpoint| match endpoint.translation(index(at)?) {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.code() == Code::Resource => Err(refuse(Code::Resource, NOTHING_TO_TELL)),
        Err(refusal) => Err(refusal),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetTranslationTag(endpoint: *const Endpoint, at: c_int, tag: *mut u64) -> c_int {
    answer_with("AM_GetTranslationTag", endpoint, |endpoint| {
        // SAFETY: the program has room for a tag there.
        unsafe { Out::new(tag)?.put(endpoint.translation(index(at)?)?.tag) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SetTranslationTag(endpoint: *const Endpoint, at: c_int, tag: u64) -> c_int {
    answer_with("AMX_SetTranslationTag", endpoint, |endpoint| endpoint.retag(index(at)?, tag))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetTranslationName(endpoint: *const Endpoint, at: c_int, name: *mut Name) -> c_int {
    answer_with("AM_GetTranslationName", endpoint, |endpoint| {
        // SAFETY: the program has room for a name there.
        unsafe { Out::new(name)?.put(endpoint.translation(index(at)?)?.name) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetNumTranslations(endpoint: *const Endpoint, number: *mut c_int) -> c_int {
    answer_with("AM_GetNumTranslations", endpoint, |endpoint| {
        // SAFETY: the program has room for a number there.
        unsafe { Out::new(number)?.put(endpoint.translations.borrow().len() as c_int) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_SetNumTranslations(endpoint: *const Endpoint, number: c_int) -> c_int {
    answer_with("AM_SetNumTranslations", endpoint, |endpoint| {
        let number = usize::try_from(number);
        endpoint
            .resize(number.map_err(|_| refuse(Code::Resource, "a translation table has no negative length"))?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_MaxNumTranslations(number: *mut c_int) -> c_int {
    answer("AM_MaxNumTranslations", || {
        check_initialized()?;
        // SAFETY: the program has room for a number there.
        unsafe { Out::new(number)?.put(MOST_TRANSLATIONS as c_int) };
        Ok(())
    })
}
