//! The program that the kernel runs for each frame which an interface receives: it steers the datagrams for one
//! socket address to AF_XDP sockets, and lets the kernel have all other frames.
//!
//! The program is attached by a link. The kernel detaches it when the last descriptor of the link is closed, and so
//! also when the process is killed.

use rustix::io::Errno;
use std::io;
use std::mem::size_of_val;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Commands of bpf(2).
mod command {
    pub const MAP_CREATE: i32 = 0;
    pub const MAP_UPDATE: i32 = 2;
    pub const PROGRAM_LOAD: i32 = 5;
    pub const LINK_CREATE: i32 = 28;
}

const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// The program runs after the kernel has made a packet of the frame, which every driver allows.
const MODE_GENERIC: u32 = 1 << 1;
/// The program runs in the driver.
const MODE_NATIVE: u32 = 1 << 2;
/// The function of the kernel that steers a frame to the socket of a map.
const REDIRECT_BY_MAP: i32 = 51;
/// The result that lets the kernel have the frame.
const PASS: i32 = 2;
/// The first instruction's second half names a map, not a number.
const IS_MAP: u8 = 1;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver.
    Native,
    /// After the driver, on packets of the kernel.
    Generic,
}

/// The attached program, with the sockets that it steers to.
#[derive(Debug)]
pub struct Program {
    sockets: OwnedFd,
    _link: OwnedFd,
    mode: Mode,
}

impl Program {
    /// Loads the program for datagrams to `address`, and attaches it to an interface with this number of queues.
    ///
    /// # Errors
    /// Returns an error if this process may not, or if the interface has a program already.
    pub fn attach(interface: u32, queues: u32, address: SocketAddrV4) -> io::Result<Self> {
        let sockets = make_map(queues)?;
        let program = load(&instructions(&sockets, address))?;
        let native = link(&program, interface, MODE_NATIVE);
        let (link, mode) = match native {
            Ok(link) => (link, Mode::Native),
            Err(error) if error == Errno::BUSY => return Err(error.into()),
            // The driver runs no programs, or not with the present settings of the interface.
            Err(_) => (link(&program, interface, MODE_GENERIC)?, Mode::Generic),
        };
        Ok(Self { sockets, _link: link, mode })
    }

    /// Returns where the program runs.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Steers the datagrams of a queue to a socket that is bound to it.
    ///
    /// # Errors
    /// Returns an error if the socket is none of AF_XDP.
    pub fn steer(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let (key, value) = (queue, socket.as_raw_fd());
        let update = Update {
            map: self.sockets.as_raw_fd(),
            padding: 0,
            key: (&raw const key) as u64,
            value: (&raw const value) as u64,
            flags: 0,
        };
        call(command::MAP_UPDATE, &update)?;
        Ok(())
    }
}

/// The arguments of `MAP_CREATE`.
#[repr(C)]
struct MapCreation {
    kind: u32,
    key_len: u32,
    value_len: u32,
    entries: u32,
    flags: u32,
}

/// The arguments of `MAP_UPDATE`.
#[repr(C)]
struct Update {
    map: i32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The arguments of `PROGRAM_LOAD`.
#[repr(C)]
struct Load {
    kind: u32,
    instructions_len: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_len: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

/// The arguments of `LINK_CREATE`.
#[repr(C)]
struct LinkCreation {
    program: i32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Calls bpf(2). All structures of arguments may be shorter than the kernel's: what is missing counts as 0.
fn call<A>(command: i32, arguments: &A) -> Result<i32, Errno> {
    // SAFETY: the arguments are those of the command, and all addresses in them are valid during the call.
    let returned = unsafe { libc::syscall(libc::SYS_bpf, command, arguments, size_of_val(arguments)) };
    if returned < 0 { Err(last_error()) } else { Ok(returned as i32) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Calls bpf(2) for a command that returns a new descriptor.
fn create<A>(command: i32, arguments: &A) -> Result<OwnedFd, Errno> {
    // SAFETY: the kernel has just opened the descriptor for this call.
    call(command, arguments).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Tries whether this process may make maps.
pub fn try_map() -> io::Result<()> {
    make_map(1)?;
    Ok(())
}

/// Makes a map with a socket for each queue.
fn make_map(queues: u32) -> Result<OwnedFd, Errno> {
    let creation = MapCreation { kind: MAP_OF_SOCKETS, key_len: 4, value_len: 4, entries: queues, flags: 0 };
    create(command::MAP_CREATE, &creation)
}

fn load(instructions: &[Instruction]) -> Result<OwnedFd, Errno> {
    let license = c"Apache-2.0 OR MIT";
    let mut name = [0; 16];
    name[..7].copy_from_slice(b"netdyno");
    create(
        command::PROGRAM_LOAD,
        &Load {
            kind: PROGRAM_XDP,
            instructions_len: instructions.len() as u32,
            instructions: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_len: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name,
            interface: 0,
            attach_type: ATTACH_XDP,
        },
    )
}

fn link(program: &OwnedFd, interface: u32, flags: u32) -> Result<OwnedFd, Errno> {
    let creation = LinkCreation { program: program.as_raw_fd(), interface, attach_type: ATTACH_XDP, flags };
    create(command::LINK_CREATE, &creation)
}

/// An instruction of the kernel's machine for programs (RFC 9669).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// The destination register in the low half, the source register in the high half.
    registers: u8,
    offset: i16,
    number: i32,
}

const fn instruction(code: u8, destination: u8, source: u8, offset: i16, number: i32) -> Instruction {
    Instruction { code, registers: destination | source << 4, offset, number }
}

/// The codes of the instructions that the program uses.
mod code {
    pub const LOAD_BYTE: u8 = 0x71;
    pub const LOAD_HALF: u8 = 0x69;
    pub const LOAD_WORD: u8 = 0x61;
    pub const LOAD_NUMBER: u8 = 0x18;
    pub const COPY: u8 = 0xbf;
    pub const SET: u8 = 0xb7;
    pub const ADD: u8 = 0x07;
    pub const AND: u8 = 0x57;
    pub const IF_GREATER: u8 = 0x2d;
    /// Compares 32 bits, so that a number with its highest bit set is not taken for a negative one.
    pub const IF_OTHER: u8 = 0x56;
    pub const CALL: u8 = 0x85;
    pub const END: u8 = 0x95;
}

/// Offsets in the headers of a frame ([`netdyno_protocol::frame::ethernet`]).
mod at {
    pub const TYPE: i16 = 12;
    pub const VERSION: i16 = 14;
    pub const FRAGMENT: i16 = 20;
    pub const PROTOCOL: i16 = 23;
    pub const ADDRESS: i16 = 30;
    pub const PORT: i16 = 36;
    pub const END: i32 = 42;
}

/// Returns the program. In words: a frame with an unfragmented UDP datagram over IPv4 to `address` goes to the
/// socket of its queue; all others, and those of queues without a socket, go to the kernel.
fn instructions(sockets: &OwnedFd, address: SocketAddrV4) -> Vec<Instruction> {
    /// Jumps to the end of the program if a field of the frame is not `number`, as the machine reads it.
    fn unless(load: u8, offset: i16, number: u32) -> [Instruction; 2] {
        [instruction(load, 5, 2, offset, 0), instruction(code::IF_OTHER, 5, 0, TO_PASS, number as i32)]
    }
    /// Stands for the distance to the last two instructions.
    const TO_PASS: i16 = i16::MAX;
    let half = |bytes: [u8; 2]| u32::from(u16::from_ne_bytes(bytes));
    let mut all = vec![
        // r2 and r3 are the first byte of the frame and the one behind its last.
        instruction(code::LOAD_WORD, 2, 1, 0, 0),
        instruction(code::LOAD_WORD, 3, 1, 4, 0),
        instruction(code::COPY, 4, 2, 0, 0),
        instruction(code::ADD, 4, 0, 0, at::END),
        instruction(code::IF_GREATER, 4, 3, TO_PASS, 0),
    ];
    all.extend(unless(code::LOAD_HALF, at::TYPE, half([0x08, 0x00])));
    all.extend(unless(code::LOAD_BYTE, at::VERSION, 0x45));
    all.extend(unless(code::LOAD_BYTE, at::PROTOCOL, 17));
    all.extend(unless(code::LOAD_WORD, at::ADDRESS, u32::from_ne_bytes(address.ip().octets())));
    all.extend(unless(code::LOAD_HALF, at::PORT, half(address.port().to_be_bytes())));
    all.extend([
        instruction(code::LOAD_HALF, 5, 2, at::FRAGMENT, 0),
        instruction(code::AND, 5, 0, 0, half([0x3f, 0xff]) as i32),
        instruction(code::IF_OTHER, 5, 0, TO_PASS, 0),
        // Steers to the socket of the queue. The third argument is the result if there is none.
        instruction(code::LOAD_WORD, 2, 1, 16, 0),
        instruction(code::LOAD_NUMBER, 1, IS_MAP, 0, sockets.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(code::SET, 3, 0, 0, PASS),
        instruction(code::CALL, 0, 0, 0, REDIRECT_BY_MAP),
        instruction(code::END, 0, 0, 0, 0),
        instruction(code::SET, 0, 0, 0, PASS),
        instruction(code::END, 0, 0, 0, 0),
    ]);
    let pass = all.len() - 2;
    for (place, instruction) in all.iter_mut().enumerate() {
        if instruction.offset == TO_PASS {
            instruction.offset = (pass - place - 1) as i16;
        }
    }
    all
}
