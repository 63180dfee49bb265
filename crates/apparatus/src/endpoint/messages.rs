//! The functions for messages that the hook stands in for.

use super::{Counts, End, Endpoint, Operation, behind, bytes_of};
use crate::abi::{self, Address, Ep, IoVec, Msg, Opaque, TaggedMsg};
use crate::patch::{self, call};
use core::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// When a send with flags of its own ends: they stand in the place of the endpoint's, and who asks for
/// this one's delivery waits for it.
fn sent_with(flags: u64) -> End {
    if flags & abi::DELIVERY_COMPLETE != 0 { End::Back } else { End::Sent }
}

fn message(to: Address, bytes: usize, end: End, context: Opaque) -> Operation {
    Operation { to, bytes, end, counts: Counts::Sends, context }
}

// Each of the following stands in for the provider's function of that name. SAFETY, for all of them:
// they are reached through a table of ours, which leads to the state; the arguments are those that
// the program gave, and go to the provider as they are.

/// The provider's functions for messages, by what they are called with.
macro_rules! messages {
    ($table:ident $msg:ident; $send:ident $sendv:ident $sendmsg:ident $inject:ident $senddata:ident $injectdata:ident; $($tag:ident)?) => {
        pub(super) unsafe extern "C" fn $send(ep: *mut Ep, buf: *const c_void, len: usize, desc: Opaque, to: Address, $($tag: u64,)? context: Opaque) -> isize {
            // SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                state.send(&message(to, len, state.sent(), context), None, |data| match data {
                    Some(data) => call!(theirs.senddata(ep, buf, len, desc, data, to, $($tag,)? context)),
                    None => call!(theirs.send(ep, buf, len, desc, to, $($tag,)? context)),
                })
            }
        }

        pub(super) unsafe extern "C" fn $senddata(ep: *mut Ep, buf: *const c_void, len: usize, desc: Opaque, data: u64, to: Address, $($tag: u64,)? context: Opaque) -> isize {
            // SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                state.send(&message(to, len, state.sent(), context), Some(data), |stamped| {
                    call!(theirs.senddata(ep, buf, len, desc, stamped.unwrap_or(data), to, $($tag,)? context))
                })
            }
        }

        pub(super) unsafe extern "C" fn $inject(ep: *mut Ep, buf: *const c_void, len: usize, to: Address $(, $tag: u64)?) -> isize {
            // SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                state.send(&message(to, len, End::Sent, ptr::null_mut()), None, |data| match data {
                    Some(data) => call!(theirs.injectdata(ep, buf, len, data, to $(, $tag)?)),
                    None => call!(theirs.inject(ep, buf, len, to $(, $tag)?)),
                })
            }
        }

        pub(super) unsafe extern "C" fn $injectdata(ep: *mut Ep, buf: *const c_void, len: usize, data: u64, to: Address $(, $tag: u64)?) -> isize {
            // SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                state.send(&message(to, len, End::Sent, ptr::null_mut()), Some(data), |stamped| {
                    call!(theirs.injectdata(ep, buf, len, stamped.unwrap_or(data), to $(, $tag)?))
                })
            }
        }

        pub(super) unsafe extern "C" fn $sendv(ep: *mut Ep, iov: *const IoVec, desc: *mut Opaque, count: usize, to: Address, $($tag: u64,)? context: Opaque) -> isize {
            // A vector with data has no function of its own, and one with flags loses those that the
            // endpoint has: it goes without a stamp. SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                state.send(&message(to, bytes_of(iov, count), state.sent(), context), None, |data| match data {
                    Some(_) => -abi::ENOSYS,
                    None => call!(theirs.sendv(ep, iov, desc, count, to, $($tag,)? context)),
                })
            }
        }

        pub(super) unsafe extern "C" fn $sendmsg(ep: *mut Ep, msg: *const $msg, flags: u64) -> isize {
            // SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                let data = (flags & abi::REMOTE_CQ_DATA != 0).then_some((*msg).data);
                let bytes = bytes_of((*msg).iov, (*msg).iov_count);
                state.send(&message((*msg).addr, bytes, sent_with(flags), (*msg).context), data, |stamped| match stamped {
                    Some(data) => {
                        let msg = $msg { data, ..*msg };
                        call!(theirs.sendmsg(ep, &raw const msg, flags | abi::REMOTE_CQ_DATA))
                    }
                    None => call!(theirs.sendmsg(ep, msg, flags)),
                })
            }
        }
    };
}

messages!(msg Msg; send sendv sendmsg inject senddata injectdata; );
messages!(tagged TaggedMsg; tsend tsendv tsendmsg tinject tsenddata tinjectdata; tag);

/// Receives: a message that one of them brings may have been here before.
macro_rules! receives {
    ($($table:ident: $ours:ident => $theirs:ident($($argument:ident: $kind:ty),*);)*) => {$(
        pub(super) unsafe extern "C" fn $ours(ep: *mut Ep, $($argument: $kind),*) -> isize {
            // SAFETY: see above.
            unsafe {
                let (state, theirs) = behind!(ep.$table);
                state.note_receive();
                call!(theirs.$theirs(ep, $($argument),*))
            }
        }
    )*};
}

receives! {
    msg: recv => recv(buf: Opaque, len: usize, desc: Opaque, from: Address, context: Opaque);
    msg: recvv => recvv(iov: *const IoVec, desc: *mut Opaque, count: usize, from: Address, context: Opaque);
    msg: recvmsg => recvmsg(msg: *const Msg, flags: u64);
    tagged: trecv => recv(buf: Opaque, len: usize, desc: Opaque, from: Address, tag: u64, ignore: u64, context: Opaque);
    tagged: trecvv => recvv(iov: *const IoVec, desc: *mut Opaque, count: usize, from: Address, tag: u64, ignore: u64, context: Opaque);
}

pub(super) unsafe extern "C" fn trecvmsg(ep: *mut Ep, msg: *const TaggedMsg, flags: u64) -> isize {
    // SAFETY: see above.
    unsafe {
        let (state, theirs) = behind!(ep.tagged);
        let queue = state.arrivals().filter(|_| flags & abi::PEEK != 0);
        match queue {
            Some(queue) => queue.expect_peek((*msg).context, flags & (abi::CLAIM | abi::DISCARD) != 0),
            None => state.note_receive(),
        }
        let result = call!(theirs.recvmsg(ep, msg, flags));
        if let Some(queue) = queue.filter(|_| result != 0) {
            queue.forget_peek((*msg).context);
        }
        result
    }
}
