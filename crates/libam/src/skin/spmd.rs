//! Jobs: start, ranks, barrier, gathering, end.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use crate::arguments::{Arguments, is_invited};
use crate::code::Code;
use crate::ending::kill;
use crate::guard::{Out, answer, index, initialize, quietly, values};
use crate::objects::{Bundle, Endpoint};
use crate::refusal::{Refusal, refuse};
use crate::spawning::ways::Spawn;
use crate::{job, spawning, spmd};
use netdyno_job::place::Place;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// The exit code of a job whose end the program asked for in a call that failed.
const FAILED: c_int = 1;

/// The arguments of a start. Only the parts that a worker needs.
struct Start {
    outstanding: c_int,
    id: *mut u64,
    bundle: *mut *const Bundle,
    endpoint: *mut *const Endpoint,
}

impl Start {
    fn run(self, invitation: Option<&str>) -> Result<(), Refusal> {
        let (bundle, endpoint) = (Out::new(self.bundle)?, Out::new(self.endpoint)?);
        if self.outstanding < 0 {
            return Err(refuse(Code::BadArg, "the depth of the network is negative"));
        }
        let job = spmd::start(invitation)?;
        initialize();
        // SAFETY: the program has room for both handles, and for a number where the pointer is not NULL.
        unsafe {
            bundle.put(job.endpoint.bundle());
            endpoint.put(job.endpoint);
            if !self.id.is_null() {
                self.id.write_unaligned(job.id);
            }
        }
        Ok(())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMMPI_SPMDStartup(
    _: *mut c_int,
    _: *mut *mut *mut c_char,
    outstanding: c_int,
    id: *mut u64,
    bundle: *mut *const Bundle,
    endpoint: *mut *const Endpoint,
) -> c_int {
    answer("SPMDStartup", || Start { outstanding, id, bundle, endpoint }.run(None))
}

/// The level of MPI that corresponds to what bundles allow: threads, one after the other in a bundle.
const THREADS: &CStr = c"MPI_THREAD_SERIALIZED";

/// Returns 1 before the start, and 0 later.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMMPI_SPMDSetThreadMode(
    _: c_int,
    provided: *mut *const c_char,
    _: *mut c_int,
    _: *mut *mut *mut c_char,
) -> c_int {
    quietly(0, || {
        if !provided.is_null() {
            // SAFETY: the program has room for a pointer.
            unsafe { provided.write_unaligned(THREADS.as_ptr()) };
        }
        job::job().is_none().into()
    })
}

/// Without a launcher, this process starts the ranks and ends with them.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMUDP_SPMDStartup(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    ranks: c_int,
    outstanding: c_int,
    spawn: Option<Spawn>,
    id: *mut u64,
    bundle: *mut *const Bundle,
    endpoint: *mut *const Endpoint,
) -> c_int {
    answer("SPMDStartup", || {
        // SAFETY: the program passes the arguments of `main`.
        let mut arguments = unsafe { Arguments::of(argc, argv) };
        let invitation = arguments.as_ref().and_then(Arguments::invitation);
        if invitation.is_none() && !is_worker() {
            let none = || refuse(Code::BadArg, "the arguments of main are NULL");
            kill(spawning::spawn(&arguments.ok_or_else(none)?.all(), ranks, spawn)?);
        }
        Start { outstanding, id, bundle, endpoint }.run(invitation.as_deref())?;
        if let Some(arguments) = arguments.as_mut().filter(|_| invitation.is_some()) {
            arguments.remove_invitation();
        }
        Ok(())
    })
}

fn is_worker() -> bool {
    // Contradictory variables are told by the start.
    job::job().is_some() || !matches!(Place::of_this_process(), Ok(None))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SPMDIsWorker(argv: *const *const c_char) -> c_int {
    quietly(1, || {
        // SAFETY: the program passes the arguments of `main`.
        c_int::from(is_worker() || unsafe { is_invited(argv) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn AMX_SPMDExit(code: c_int) -> c_int {
    // The end takes the lock of the bundle itself, and waits for no thread that has it.
    answer("SPMDExit", || job::begun()?.exit(code))
}

#[unsafe(no_mangle)]
extern "C" fn AMX_SPMDSetExitCallback(callback: Option<unsafe extern "C" fn(c_int)>) -> c_int {
    answer("SPMDSetExitCallback", || {
        job::started()?.set_callback(callback);
        Ok(())
    })
}

/// Returns 0 before the start.
#[unsafe(no_mangle)]
extern "C" fn AMX_SPMDNumProcs() -> c_int {
    quietly(0, || job::job().map_or(0, |job| job.ranks as c_int))
}

/// Returns -1 before the start.
#[unsafe(no_mangle)]
extern "C" fn AMX_SPMDMyProc() -> c_int {
    quietly(-1, || job::job().map_or(-1, |job| job.rank as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn AMX_SPMDBarrier() -> c_int {
    answer("SPMDBarrier", || job::started()?.barrier())
}

/// Checks the number of bytes that a rank gives, at all ranks alike.
fn check_length(len: usize) -> Result<(), Refusal> {
    if len as u64 > job::MOST_GIVEN {
        return Err(refuse(Code::BadArg, "a rank gives at most 1 GiB at once"));
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SPMDAllGather(source: *const c_void, all: *mut c_void, len: usize) -> c_int {
    answer("SPMDAllGather", || {
        let job = job::started()?;
        if (source.is_null() || all.is_null()) && len > 0 {
            return Err(refuse(Code::BadArg, "the source or the destination is NULL"));
        }
        check_length(len)?;
        // SAFETY: the program says that the source has that many bytes.
        let mine = unsafe { values(source.cast(), len) };
        for (rank, given) in job.gather(mine)?.iter().enumerate() {
            if given.len() != len {
                return Err(refuse(Code::BadArg, "the ranks give different numbers of bytes"));
            }
            // SAFETY: the program says that there is room for the bytes of all ranks.
            unsafe { all.cast::<u8>().add(rank * len).copy_from_nonoverlapping(given.as_ptr(), len) };
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SPMDBroadcast(bytes: *mut c_void, len: usize, root: c_int) -> c_int {
    answer("SPMDBroadcast", || {
        let job = job::started()?;
        let root = index(root)?;
        if root >= job.ranks || bytes.is_null() && len > 0 {
            return Err(refuse(Code::BadArg, "there is no such rank, or the bytes are NULL"));
        }
        check_length(len)?;
        // SAFETY: the program says that there are that many bytes.
        let mine = unsafe { values(bytes.cast(), len) }.to_vec();
        let given = job.broadcast(root, mine)?;
        if given.len() != len {
            return Err(refuse(Code::BadArg, "the ranks give different numbers of bytes"));
        }
        // SAFETY: as above.
        unsafe { bytes.cast::<u8>().copy_from_nonoverlapping(given.as_ptr(), len) };
        Ok(())
    })
}

/// Returns a variable of the environment of rank 0, or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SPMDgetenvMaster(name: *const c_char) -> *const c_char {
    quietly(ptr::null(), || {
        if name.is_null() {
            return ptr::null();
        }
        // SAFETY: the program says that this is a string.
        let begin = [unsafe { CStr::from_ptr(name) }.to_bytes(), b"="].concat();
        let variable = job::job().and_then(|job| job.variable(&begin));
        variable.map_or(ptr::null(), |variable| variable[begin.len()..].as_ptr())
    })
}

/// Returns a variable of the environment of rank 0, as `NAME=VALUE`, whose name begins so, or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMUDP_check_env_prefix(prefix: *const c_char) -> *const c_char {
    quietly(ptr::null(), || {
        if prefix.is_null() {
            return ptr::null();
        }
        // SAFETY: the program says that this is a string.
        let prefix = unsafe { CStr::from_ptr(prefix) }.to_bytes();
        job::job().and_then(|job| job.variable(prefix)).map_or(ptr::null(), CStr::as_ptr)
    })
}

/// Polls for messages between ranks. In a handler, and before the start, there are none to take.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMUDP_SPMDHandleControlTraffic(messages: *mut c_int) -> c_int {
    answer("SPMDHandleControlTraffic", || {
        let taken = job::started().map_or(Ok(0), |job| job.take_controls())?;
        if !messages.is_null() {
            // SAFETY: the program has room for a number.
            unsafe { messages.write_unaligned(taken.try_into().unwrap_or(c_int::MAX)) };
        }
        Ok(())
    })
}

/// Ends the job. The headers have printed why.
#[unsafe(no_mangle)]
extern "C" fn AMX_Fail() -> c_int {
    quietly(FAILED, || job::end_failed())
}

type Handler = extern "C" fn();

/// The system calls this function after all functions that the program has registered for its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: Handler = at_exit;

extern "C" fn at_exit() {
    quietly((), job::at_exit);
}
