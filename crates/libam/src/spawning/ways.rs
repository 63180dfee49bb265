//! The functions that start ranks. A program passes one of them to the start, which calls it, or one of its own, which may
//! call these.

use super::commands;
use crate::arguments::words;
use crate::code::Code;
use crate::guard::quietly;
use crate::lock::held;
use crate::refusal::{Refusal, failed, refuse};
use crate::settings;
use netdyno_job::launching::remote::Starter;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;
use std::ptr;
use std::sync::Mutex;

/// A function that starts ranks: it gets their number, and the arguments of each.
pub type Spawn = unsafe extern "C" fn(c_int, c_int, *mut *mut c_char) -> c_int;
/// The same with a list of variables for the environment of the ranks, as in later versions of AMUDP. A function without
/// this parameter does not see it, by the calling conventions of C.
type LaterSpawn = unsafe extern "C" fn(c_int, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// What functions of this library have done during a start.
#[derive(Default)]
struct Done {
    starters: Vec<Starter>,
    refusal: Option<Refusal>,
}

/// Set while a function of the program or of this library starts ranks.
static STARTING: Mutex<Option<Done>> = Mutex::new(None);

/// Calls a function that starts ranks. Returns the processes that functions of this library have started for that.
///
/// # Errors
/// Returns the error of a function of this library, or `Resource` if the program's own one returns 0.
pub fn call(spawn: Spawn, ranks: usize, command: &[OsString]) -> Result<Vec<Starter>, Refusal> {
    let ranks = c_int::try_from(ranks).map_err(|_| refuse(Code::BadArg, "there are too many ranks"))?;
    let (count, arguments) = (command.len() as c_int, strings(command)?);
    let variables = strings(&settings::of_all_hosts())?;
    *held(&STARTING) = Some(Done::default());
    // SAFETY: the type of the function differs in its last parameter alone, which it may ignore.
    let later = unsafe { std::mem::transmute::<Spawn, LaterSpawn>(spawn) };
    // SAFETY: the program says that this is such a function. Both lists end with NULL and are never freed.
    let has_started = unsafe { later(ranks, count, arguments, variables) } != 0;
    let done = held(&STARTING).take().unwrap_or_default();
    if has_started {
        return Ok(done.starters);
    }
    Err(done
        .refusal
        .unwrap_or_else(|| refuse(Code::Resource, "the program's function to start ranks has returned 0")))
}

/// Returns strings for C, with NULL behind them. They are never freed: the function may keep them.
fn strings(words: &[OsString]) -> Result<*mut *mut c_char, Refusal> {
    let words = words.iter().map(|word| Some(CString::new(word.as_bytes()).ok()?.into_raw()));
    let words: Option<Vec<*mut c_char>> = words.chain([Some(ptr::null_mut())]).collect();
    let words = words.ok_or_else(|| refuse(Code::BadArg, "an argument has a zero byte"))?;
    Ok(Box::leak(words.into_boxed_slice()).as_mut_ptr())
}

/// Runs one of the functions. Returns 1, or 0 if it fails, which the start tells.
fn start(
    name: &str,
    ranks: c_int,
    command: Vec<OsString>,
    way: impl FnOnce(usize, &[OsString], &mut Vec<Starter>) -> Result<(), Refusal>,
) -> c_int {
    let mut starting = held(&STARTING);
    let Some(done) = &mut *starting else {
        refuse(Code::Resource, "pass this function to SPMDStartup, and do not call it").tell(name);
        return 0;
    };
    let ranks = usize::try_from(ranks).unwrap_or(0);
    match way(ranks, &command, &mut done.starters) {
        Ok(()) => 1,
        Err(refusal) => {
            done.refusal = Some(refusal);
            0
        }
    }
}

/// Declares functions that start ranks.
macro_rules! ways {
    ($($name:ident: $way:expr;)*) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is that of the interface")]
        pub unsafe extern "C" fn $name(ranks: c_int, argc: c_int, argv: *mut *mut c_char) -> c_int {
            quietly(0, || {
                let count = if argv.is_null() { 0 } else { usize::try_from(argc).unwrap_or(0) };
                // SAFETY: the program passes on what the start has given it.
                start(stringify!($name), ranks, unsafe { words(count, argv) }, $way)
            })
        }
    )*};
}

ways! {
    AMUDP_SPMDLocalSpawn: local;
    AMUDP_SPMDSshSpawn: ssh;
    AMUDP_SPMDCustomSpawn: custom;
    AMUDP_SPMDRexecSpawn: |_, _, _| Err(refuse(Code::Resource, "ranks are not started by rexec: use S, L or C"));
    AMUDP_SPMDGlunixSpawn: |_, _, _| Err(refuse(Code::Resource, "ranks are not started by GLUnix: use S, L or C"));
}

/// Starts ranks on this host.
fn local(ranks: usize, command: &[OsString], starters: &mut Vec<Starter>) -> Result<(), Refusal> {
    let [program, arguments @ ..] = command else { return Err(no_program()) };
    for _ in 0..ranks {
        let mut rank = Command::new(program);
        rank.args(arguments);
        starters.push(run(program.display().to_string(), rank)?);
    }
    Ok(())
}

/// Starts each rank by ssh. The hosts take turns.
fn ssh(ranks: usize, command: &[OsString], starters: &mut Vec<Starter>) -> Result<(), Refusal> {
    let servers = text(SSH_SERVERS)?.unwrap_or_default();
    let hosts = commands::hosts(&servers);
    if hosts.is_empty() {
        return Err(failed(format!("{SSH_SERVERS} names no host: set it as in {SSH_SERVERS}='node1 node2'")));
    }
    let ssh = settings::of_amudp("SSH_CMD").unwrap_or_else(|| "ssh".into());
    let options = settings::of_amudp("SSH_OPTIONS").unwrap_or_default();
    let folder = match settings::of_amudp("SSH_REMOTE_PATH") {
        Some(folder) => folder,
        None => folder_now()?.into(),
    };
    let rank = commands::at(&folder, &commands::worker(&settings::of_all_hosts(), command));
    for host in hosts.iter().map(|host| host.name).cycle().take(ranks) {
        let mut starter = shell(&commands::with_options(&ssh, &options));
        starter.args([host.as_ref(), rank.as_os_str()]);
        starters.push(run(format!("{} {host}", ssh.display()), starter)?);
    }
    Ok(())
}

/// Starts all ranks by one command of the user.
fn custom(ranks: usize, command: &[OsString], starters: &mut Vec<Starter>) -> Result<(), Refusal> {
    let Some(pattern) = settings::of_amudp(CSPAWN_CMD) else {
        return Err(failed(format!("{CSPAWN_CMD} is not set: set it as in {CSPAWN_CMD}='mpiexec -n %N %C'")));
    };
    let servers = text(CSPAWN_SERVERS)?;
    let hosts = servers.map(|servers| commands::first_hosts(&commands::hosts(&servers), ranks));
    if hosts.is_none() && commands::needs_hosts(pattern.as_bytes()) {
        return Err(failed(format!(
            "%M in {CSPAWN_CMD} needs hosts: set {CSPAWN_SERVERS} as in 'node1 node2'"
        )));
    }
    let parts = commands::Parts {
        ranks,
        hosts: hosts.unwrap_or_default(),
        command: commands::worker(&settings::of_all_hosts(), command),
        program: command.first().ok_or_else(no_program)?.clone(),
        folder: folder_now()?.into(),
    };
    let line = OsString::from_vec(parts.fill(pattern.as_bytes()));
    // An error is one line.
    let name = pattern.to_string_lossy().lines().next().unwrap_or_default().to_owned();
    starters.push(run(name, shell(&line))?);
    Ok(())
}

const SSH_SERVERS: &str = "SSH_SERVERS";
const CSPAWN_SERVERS: &str = "CSPAWN_SERVERS";
const CSPAWN_CMD: &str = "CSPAWN_CMD";

/// Returns a setting that is text.
fn text(name: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = settings::of_amudp(name) else { return Ok(None) };
    value.into_string().map(Some).map_err(|value| failed(format!("{name}='{}' is no text", value.display())))
}

fn folder_now() -> Result<PathBuf, Refusal> {
    std::env::current_dir().map_err(|error| failed(format!("the current folder has no name: {error}")))
}

/// Returns the command in which a shell runs a line. Arguments of the command are those of the line.
fn shell(line: &OsStr) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(line).arg("sh");
    shell
}

fn run(name: String, command: Command) -> Result<Starter, Refusal> {
    let failed = |error| failed(format!("cannot run '{name}': {error}"));
    Starter::run(name.clone(), command).map_err(failed)
}

#[cold]
fn no_program() -> Refusal {
    refuse(Code::BadArg, "the arguments have no program")
}

/// A way to start ranks.
#[repr(C)]
pub struct Way {
    abbreviation: c_char,
    description: *const c_char,
    spawn: Option<Spawn>,
}

// SAFETY: nothing changes what it points to.
unsafe impl Sync for Way {}

const fn way(letter: u8, description: &'static CStr, spawn: Spawn) -> Way {
    Way { abbreviation: letter as c_char, description: description.as_ptr(), spawn: Some(spawn) }
}

/// The ways to start ranks, and the end of the list.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is that of the interface")]
pub static AMUDP_Spawnfn_Desc: [Way; 4] = [
    way(b'S', c"Start each rank by ssh (SSH_SERVERS)", AMUDP_SPMDSshSpawn),
    way(b'L', c"Start the ranks on this host", AMUDP_SPMDLocalSpawn),
    way(b'C', c"Start the ranks by a command (CSPAWN_CMD)", AMUDP_SPMDCustomSpawn),
    Way { abbreviation: 0, description: ptr::null(), spawn: None },
];

/// Returns the function that a letter stands for. Those that are refused have letters, too, which are no arguments of the
/// program.
pub fn of(letter: &[u8]) -> Option<Spawn> {
    let [letter] = letter else { return None };
    match letter.to_ascii_uppercase() {
        b'R' => Some(AMUDP_SPMDRexecSpawn),
        b'G' => Some(AMUDP_SPMDGlunixSpawn),
        letter => AMUDP_Spawnfn_Desc.iter().find(|way| way.abbreviation == letter as c_char)?.spawn,
    }
}

/// Reports whether a function starts the ranks on this host and does nothing else.
pub fn is_local(spawn: Spawn) -> bool {
    ptr::fn_addr_eq(spawn, AMUDP_SPMDLocalSpawn as Spawn)
}
