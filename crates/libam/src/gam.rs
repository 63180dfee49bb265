//! Generic Active Messages, as a thin skin over AM-2: `am.h`.
//!
//! A message names a function and not an index. All processes run the same program, but the system loads it, and each of
//! its libraries, at other addresses in each process. So the address of a function or of a variable is sent as the number
//! of the loaded object and the offset in it (`places`). Other addresses, as of memory from `malloc`, are sent as they are:
//! a program gets them from the process that they belong to.

mod places;
mod transfers;

use crate::calling::Function;
use crate::code::{Category, Code};
use crate::exchange::Outbound;
use crate::guard::{answer_gam, initialize, quietly};
use crate::job::{self, Job, Started};
use crate::message::MAX_BYTES;
use crate::objects::token::Token;
use crate::refusal::{Refusal, refuse};
use crate::spmd;
use std::ffi::{c_int, c_void};

/// Indices of the handlers of the job's endpoint that GAM uses.
const CALL: u8 = 200;
const CALL_BACK: u8 = 201;

/// A word of a message: a number or a pointer.
type Word = i64;
/// A handler of a request or a reply.
type Handler = unsafe extern "C" fn(c_int, Word, Word, Word, Word);

/// Splits words into arguments.
fn arguments<const N: usize>(words: [u64; N]) -> Vec<i32> {
    words.iter().flat_map(|word| [*word as i32, (word >> 32) as i32]).collect()
}

/// Joins two arguments.
fn word(low: i32, high: i32) -> u64 {
    u64::from(low as u32) | u64::from(high as u32) << 32
}

fn job() -> Result<Started, Refusal> {
    job::started().map_err(|_| refuse(Code::NotInit, "call am_enable first"))
}

/// Returns the rank that the message of this token comes from.
fn source(token: &Token<'_, '_>) -> c_int {
    token.source.entry(token.endpoint).map_or(-1, |rank| rank as c_int)
}

/// Starts the job. Ends the process if that is not possible, because the function returns nothing.
#[unsafe(no_mangle)]
extern "C" fn am_enable() {
    quietly((), || {
        let started = spmd::start(None).and_then(|job| {
            initialize();
            let set =
                |index: u8, function: Function| job.endpoint.handlers[usize::from(index)].set(Some(function));
            set(CALL, places::function(call as *const c_void));
            set(CALL_BACK, places::function(call as *const c_void));
            transfers::set_handlers(set);
            job.barrier()
        });
        if let Err(refusal) = started {
            job::fail(&format!("am_enable: {}", refusal.why()));
        }
    });
}

/// Waits for all processes, and ends this one's part in the job.
#[unsafe(no_mangle)]
extern "C" fn am_disable() {
    quietly((), || {
        // A process that has not begun has nothing to end.
        if let Ok(job) = job() {
            let _ = job.barrier();
            job.close();
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn am_procs() -> c_int {
    quietly(0, || job::job().map_or(0, |job| job.ranks as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn am_my_proc() -> c_int {
    quietly(-1, || job::job().map_or(-1, |job| job.rank as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn am_max_size() -> c_int {
    quietly(0, || MAX_BYTES as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn am_poll() {
    quietly((), || {
        let polled = job().and_then(|job| {
            job.endpoint.bundle().poll()?;
            transfers::end_stores();
            Ok(())
        });
        if let Err(refusal) = polled {
            refusal.tell("am_poll");
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn am_barrier() {
    quietly((), || {
        if let Err(refusal) = job().and_then(|job| job.barrier()) {
            refusal.tell("am_barrier");
        }
    });
}

/// Calls `function` at another process with its rank and four words. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn am_request_words(
    to: c_int,
    function: *const c_void,
    a: Word,
    b: Word,
    c: Word,
    d: Word,
) -> c_int {
    answer_gam("am_request", || {
        let job = job()?;
        let arguments =
            arguments([places::encode_function(function)?, a as u64, b as u64, c as u64, d as u64]);
        job.endpoint.request(rank(&job, to)?, short(CALL, &arguments), false)
    })
}

/// Calls `function` at the process whose request this one handles. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn am_reply_words(
    to: c_int,
    function: *const c_void,
    a: Word,
    b: Word,
    c: Word,
    d: Word,
) -> c_int {
    answer_gam("am_reply", || {
        let token = job()?.endpoint.bundle().place.token();
        let token = token.ok_or_else(|| refuse(Code::Resource, "no handler runs"))?;
        if source(token) != to {
            return Err(refuse(Code::BadArg, "a reply goes to the process that sent the request"));
        }
        token.reply(short(
            CALL_BACK,
            &arguments([places::encode_function(function)?, a as u64, b as u64, c as u64, d as u64]),
        ))
    })
}

fn short(handler: u8, arguments: &[i32]) -> Outbound<'_> {
    Outbound { handler, category: Category::Short, bytes: &[], offset: 0, arguments }
}

/// Takes a rank of the program.
fn rank(job: &Job, rank: c_int) -> Result<u32, Refusal> {
    let rank = u32::try_from(rank).ok().filter(|rank| (*rank as usize) < job.ranks);
    rank.ok_or_else(|| refuse(Code::BadArg, "there is no such process"))
}

/// The AM-2 handler of requests and replies of GAM.
#[rustfmt::skip]
unsafe extern "C" fn call(
    token: *const c_void,
    f0: i32, f1: i32, a0: i32, a1: i32, b0: i32, b1: i32, c0: i32, c1: i32, d0: i32, d1: i32,
) {
    quietly((), || {
        // SAFETY: the library passes a token.
        let Some(token) = (unsafe { Token::find(token) }) else { return };
        let Some(function) = places::decode_function(word(f0, f1)) else { return };
        let words = [word(a0, a1), word(b0, b1), word(c0, c1), word(d0, d1)].map(|word| word as Word);
        let [a, b, c, d] = words;
        // SAFETY: the sender runs the same program and says that the function is such a handler. It does not see words
        // beyond its parameters.
        unsafe { std::mem::transmute::<Function, Handler>(function)(source(token), a, b, c, d) };
    });
}
