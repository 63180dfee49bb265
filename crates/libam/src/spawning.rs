//! The start of ranks by the program itself, as AMUDP does: the first process starts the others on this host, and ends
//! when they have ended.

use crate::code::Code;
use crate::guard::quietly;
use crate::refusal::{Refusal, refuse, say};
use netdyno_job::launching::{self, End};
use std::ffi::{OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// A function that starts ranks. Only that of this library is called.
pub type Spawn = unsafe extern "C" fn(c_int, c_int, *mut *mut c_char) -> c_int;

/// How the ranks are to be started, as the second argument of a program says.
const HERE: &[u8] = b"Ll";
const ELSEWHERE: &[u8] = b"SRGCsrgc";

/// Starts the ranks and waits for their end. Returns the exit code of the job.
///
/// `arguments` are those of `main`. The number of ranks and the way to start them are the first two, unless the program
/// gives them as `ranks` and `spawn`.
///
/// # Errors
/// Returns `BadArg` if there is no number of ranks, and `Resource` if they cannot be started that way.
pub fn spawn(arguments: &[OsString], ranks: c_int, spawn: Option<Spawn>) -> Result<c_int, Refusal> {
    let (program, mut rest) =
        arguments.split_first().ok_or_else(|| refuse(Code::BadArg, "the arguments of main are empty"))?;
    let ranks = match ranks {
        0 => {
            let number = rest.first().and_then(|first| first.to_str()?.parse().ok());
            rest = rest.get(1..).unwrap_or_default();
            number
        }
        ranks => usize::try_from(ranks).ok(),
    };
    let ranks = ranks.filter(|ranks| *ranks > 0).ok_or_else(|| {
        refuse(
            Code::BadArg,
            "the number of ranks is not above 0: give it as the first argument of the program",
        )
    })?;
    if let Some(spawn) = spawn {
        if !std::ptr::fn_addr_eq(spawn, AMUDP_SPMDLocalSpawn as Spawn) {
            return Err(not_here());
        }
    } else if let Some([way]) = rest.first().map(|way| way.as_bytes()) {
        if ELSEWHERE.contains(way) {
            return Err(not_here());
        }
        rest = if HERE.contains(way) { &rest[1..] } else { rest };
    }
    let command: Vec<OsString> = std::iter::once(program).chain(rest).cloned().collect();
    run(&command, ranks)
}

fn run(command: &[OsString], ranks: usize) -> Result<c_int, Refusal> {
    let [name, arguments @ ..] = command else {
        return Err(refuse(Code::BadArg, "the arguments of main are empty"));
    };
    // The name may be found through PATH, or be relative to a folder that the program has left.
    let program = std::env::current_exe().map_err(|error| Refusal::new(Code::Resource, error.to_string()))?;
    let rank = |_| {
        let mut command = Command::new(&program);
        command.arg0(name).args(arguments);
        command
    };
    // A signal that ends this process ends the ranks, too.
    let end = launching::run(ranks, rank, || None);
    let end = end.map_err(|error| Refusal::new(Code::Resource, error.to_string()))?;
    if end != End::Done {
        say(&end.to_string());
    }
    Ok(end.code().into())
}

#[cold]
fn not_here() -> Refusal {
    refuse(
        Code::Resource,
        "this library starts ranks on this host alone (L): start the program by mpiexec or srun on others",
    )
}

/// Declares functions that programs pass to the start and do not call.
macro_rules! ways {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is that of the interface")]
        unsafe extern "C" fn $name(_: c_int, _: c_int, _: *mut *mut c_char) -> c_int {
            // The compiler must not make one function of two.
            quietly(0, || std::hint::black_box(stringify!($name)).is_empty().into())
        }
    )*};
}

ways! { AMUDP_SPMDLocalSpawn AMUDP_SPMDSshSpawn AMUDP_SPMDRexecSpawn AMUDP_SPMDGlunixSpawn AMUDP_SPMDCustomSpawn }

/// A way to start ranks.
#[repr(C)]
pub struct Way {
    abbreviation: c_char,
    description: *const c_char,
    spawn: Option<Spawn>,
}

// SAFETY: nothing changes what it points to.
unsafe impl Sync for Way {}

/// The way to start ranks, and the end of the list.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is that of the interface")]
pub static AMUDP_Spawnfn_Desc: [Way; 2] = [
    Way {
        abbreviation: b'L' as c_char,
        description: c"Start the ranks on this host".as_ptr(),
        spawn: Some(AMUDP_SPMDLocalSpawn),
    },
    Way { abbreviation: 0, description: ptr::null(), spawn: None },
];
