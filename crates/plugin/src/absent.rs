//! Stubs in place of functions that a layer lacks. They fail without an error text.

use crate::abi::{Arrival, RawChannel};
use crate::plugin::{Messages, Requests};
use std::ffi::{c_int, c_void};

const FAILED: c_int = -1;

pub(crate) const MESSAGES: Messages =
    Messages { post_receive, post_send, test_receive, test_send, cancel_receive };
pub(crate) const REQUESTS: Requests = Requests { request, take_reply, answer };

unsafe extern "C" fn post_receive(_: *mut RawChannel, _: u32, _: i32, _: *mut c_void, _: usize) -> c_int {
    FAILED
}

unsafe extern "C" fn post_send(_: *mut RawChannel, _: u32, _: i32, _: *const c_void, _: usize) -> c_int {
    FAILED
}

unsafe extern "C" fn test_receive(_: *mut RawChannel, _: u32, _: *mut Arrival) -> c_int {
    FAILED
}

unsafe extern "C" fn test_send(_: *mut RawChannel, _: u32) -> c_int {
    FAILED
}

unsafe extern "C" fn cancel_receive(_: *mut RawChannel, _: u32) -> c_int {
    FAILED
}

unsafe extern "C" fn request(_: *mut RawChannel, _: i32, _: usize, _: usize) -> c_int {
    FAILED
}

unsafe extern "C" fn take_reply(_: *mut RawChannel, _: *mut i32) -> c_int {
    FAILED
}

unsafe extern "C" fn answer(_: *mut RawChannel) -> c_int {
    FAILED
}
