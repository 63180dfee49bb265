//! A connection that cannot be made is refused at once, with an error.

use crate::common::process::{Child, from_hex, role, to_hex};
use crate::common::{TIMEOUT, until};
use netdyno_protocol::frame::port::{Malformed, PortAddress};
use netdyno_stack::am::{Config, ConnectError, Endpoint, Handlers, PeerId, Wire};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::process::Signal;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::channel;

fn endpoint() -> Endpoint<()> {
    Endpoint::new(Handlers::new(), Config::new().window(8).medium_bytes(64)).unwrap()
}

/// Connects a new endpoint to `address`. Fails the test if that hangs.
fn connect(address: &[u8]) -> Result<PeerId, ConnectError> {
    let (tell, told) = channel();
    let address = address.to_vec();
    std::thread::spawn(move || {
        let mut endpoint = endpoint();
        let port = endpoint.open_port(Wire::Shm).unwrap();
        tell.send(endpoint.connect(port, &address)).unwrap();
    });
    told.recv_timeout(TIMEOUT).expect("connecting hangs")
}

fn refuse(address: &[u8]) -> ConnectError {
    let error = connect(address).unwrap_err();
    assert!(!error.to_string().is_empty());
    error
}

/// Returns why the bytes are no address.
fn malformed(address: &[u8]) -> String {
    match refuse(address) {
        ConnectError::Address { wire: Wire::Shm, reason } => reason,
        other => panic!("{other}"),
    }
}

/// Returns an address that is valid except for the descriptor.
fn at_descriptor(fd: &OwnedFd) -> Vec<u8> {
    let port = endpoint().open_port(Wire::Shm).unwrap();
    let address = PortAddress::parse(&port.address()).unwrap();
    PortAddress { fd: fd.as_raw_fd().unsigned_abs(), ..address }.encode().to_vec()
}

#[test]
fn child_process() {
    let Some((_, parent)) = role() else { return };
    let port = endpoint().open_port(Wire::Shm).unwrap();
    parent.say(&to_hex(&port.address()));
    while !parent.is_gone() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn bytes_that_are_no_address() {
    let port = endpoint().open_port(Wire::Shm).unwrap();
    let address = port.address();
    for len in 0..address.len() {
        assert_eq!(malformed(&address[..len]), format!("{:?}", Malformed::Length(len)));
    }
    let longer = [&address[..], &[0]].concat();
    assert_eq!(malformed(&longer), format!("{:?}", Malformed::Length(longer.len())));
    let mut other = address.clone();
    other[3] = b'2';
    assert_eq!(malformed(&other), format!("{:?}", Malformed::Magic));
    malformed(b"nothing like an address, as long....");

    let address = PortAddress::parse(&address).unwrap();
    for window in [0, 3, 1 << 16] {
        let address = PortAddress { window, ..address };
        assert!(malformed(&address.encode()).starts_with("Window("));
    }
    for medium_bytes in [1, 1 << 21] {
        let address = PortAddress { medium_bytes, ..address };
        assert!(malformed(&address.encode()).starts_with("Medium("));
    }
}

#[test]
fn a_segment_that_is_not_the_one_meant() {
    let port = endpoint().open_port(Wire::Shm).unwrap();
    let address = PortAddress::parse(&port.address()).unwrap();
    let mut nonce = address.nonce;
    nonce[15] ^= 1;
    let others = [
        PortAddress { nonce, ..address },
        // The size differs from the one in the address.
        PortAddress { window: 1 << 15, medium_bytes: 1 << 20, ..address },
        PortAddress { window: 64, ..address },
        PortAddress { fd: 99_999, ..address },
        PortAddress { fd: u32::MAX, ..address },
    ];
    for other in others {
        assert!(matches!(refuse(&other.encode()), ConnectError::Segment(_)));
    }
}

#[test]
fn a_descriptor_of_something_else() {
    // Both ends of a pipe: opening a pipe for reading or writing alone could hang.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    // A named pipe.
    let dir = tempdir();
    let fifo = dir.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let fifo: OwnedFd = std::fs::File::options().read(true).write(true).open(fifo).unwrap().into();
    let directory: OwnedFd = std::fs::File::open(&dir).unwrap().into();
    std::fs::write(dir.join("file"), [0; 65536]).unwrap();
    let file: OwnedFd = std::fs::File::open(dir.join("file")).unwrap().into();
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let socket: OwnedFd = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
    let life: OwnedFd =
        rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty()).unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    for fd in [reader, writer, fifo, directory, file, null, socket, life] {
        let error = refuse(&at_descriptor(&fd));
        assert!(matches!(error, ConnectError::Segment(_)), "{error}");
    }
}

/// Memory that its owner could shrink, or that this process may not write to, is refused even where
/// everything else is right.
#[test]
fn memory_with_other_seals() {
    let port = endpoint().open_port(Wire::Shm).unwrap();
    let address = PortAddress::parse(&port.address()).unwrap();
    let original = std::fs::read(format!("/proc/self/fd/{}", address.fd)).unwrap();
    let right = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let cases = [
        (SealFlags::empty(), false),
        (SealFlags::SHRINK, false),
        (SealFlags::SHRINK | SealFlags::GROW, false),
        (right | SealFlags::WRITE, false),
        (right, true),
    ];
    for (seals, is_right) in cases {
        let fd = memfd_create(c"netdyno", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, original.len() as u64).unwrap();
        rustix::io::write(&fd, &original[..4096]).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        let address = PortAddress { fd: fd.as_raw_fd().unsigned_abs(), ..address };
        assert_eq!(connect(&address.encode()).is_ok(), is_right, "{seals:?}");
    }
}

#[test]
fn a_process_that_has_ended() {
    let mut child = Child::start(module_path!(), "port");
    let address = from_hex(&child.hear());
    assert!(connect(&address).is_ok(), "while it lives");

    // The process is a zombie first, and then gone.
    let is_refused =
        || matches!(connect(&address), Err(ConnectError::Life { .. } | ConnectError::Segment(_)));
    child.signal(Signal::KILL);
    until("a killed process is refused", is_refused);
    child.kill();
    assert!(is_refused());
}

#[test]
fn processes_that_are_none_of_ours() {
    let port = endpoint().open_port(Wire::Shm).unwrap();
    let address = PortAddress::parse(&port.address()).unwrap();
    // The first process of the machine, which may belong to any user, and numbers of no process.
    for fd in 0..4 {
        let address = PortAddress { pid: 1, fd, ..address };
        assert!(matches!(refuse(&address.encode()), ConnectError::Life { .. } | ConnectError::Segment(_)));
    }
    for pid in [0, i32::MAX as u32, u32::MAX] {
        let address = PortAddress { pid, ..address };
        assert!(matches!(refuse(&address.encode()), ConnectError::Life { pid: named, .. } if named == pid));
    }
}

/// A failed attempt leaves no peer behind, and the endpoint works as before.
#[test]
fn an_endpoint_survives_failed_attempts() {
    let (mut a, mut b) = (endpoint(), endpoint());
    for _ in 0..3 {
        let port = a.open_port(Wire::Shm).unwrap();
        assert!(a.connect(port, b"no address").is_err());
    }
    let (to_b, to_a) = crate::common::connect(Wire::Shm, &mut a, &mut b);
    assert_eq!((to_b.index(), to_a.index()), (0, 0));
    a.try_request(to_b, 0, [1]).unwrap();
    a.poll(&mut ()).unwrap();
}

fn tempdir() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("netdyno-{:016x}", fastrand::u64(..)));
    std::fs::create_dir(&dir).unwrap();
    dir
}

/// An address serves one peer, because a second writer would overwrite the messages of the first one.
#[test]
fn an_address_that_is_taken() {
    let port = endpoint().open_port(Wire::Shm).unwrap();
    let address = port.address();
    assert!(connect(&address).is_ok());
    assert!(matches!(refuse(&address), ConnectError::Taken(pid) if pid == std::process::id()));
}
