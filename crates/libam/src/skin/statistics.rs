//! The counts of endpoints.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::endpoint::answer_with;
use crate::code::Code;
use crate::guard::{Out, answer, check_initialized, quietly};
use crate::lock::held;
use crate::objects::Endpoint;
use crate::refusal::refuse;
use crate::statistics::Statistics;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

/// The counts of a new endpoint.
#[unsafe(no_mangle)]
pub static AMX_initial_stats: Statistics = Statistics::INITIAL;

unsafe extern "C" {
    fn fputs(text: *const c_char, stream: *mut c_void) -> c_int;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_GetEndpointStatistics(
    endpoint: *const Endpoint,
    statistics: *mut Statistics,
) -> c_int {
    answer_with("AMX_GetEndpointStatistics", endpoint, |endpoint| {
        // SAFETY: the program has room for the counts there.
        unsafe { Out::new(statistics)?.put(endpoint.counts.read()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_ResetEndpointStatistics(endpoint: *const Endpoint) -> c_int {
    answer_with("AMX_ResetEndpointStatistics", endpoint, |endpoint| {
        endpoint.counts.reset();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_AggregateStatistics(sum: *mut Statistics, added: *const Statistics) -> c_int {
    answer("AMX_AggregateStatistics", || {
        check_initialized()?;
        if sum.is_null() || added.is_null() {
            return Err(refuse(Code::BadArg, "the counts are NULL"));
        }
        // SAFETY: the program says that both are counts. They need not be aligned: a message may carry them.
        unsafe {
            let mut total = sum.read_unaligned();
            total.add(&added.read_unaligned());
            sum.write_unaligned(total);
        }
        Ok(())
    })
}

/// Returns the counts as text, which the next call of any thread overwrites, and writes it to the stream if there is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_DumpStatistics(
    stream: *mut c_void,
    statistics: *const Statistics,
    is_of_all: c_int,
) -> *const c_char {
    quietly(ptr::null(), || {
        static TEXT: Mutex<Option<CString>> = Mutex::new(None);
        if statistics.is_null() {
            return ptr::null();
        }
        // SAFETY: the program says that these are counts.
        let statistics = unsafe { statistics.read_unaligned() };
        let text = CString::new(statistics.text(is_of_all != 0)).unwrap_or_default();
        if !stream.is_null() {
            // SAFETY: the program says that this is a stream of its C library.
            unsafe { fputs(text.as_ptr(), stream) };
        }
        held(&TEXT).insert(text).as_ptr()
    })
}
