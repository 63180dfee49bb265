//! A process that writes to a provider over shared memory without being a provider itself.

#![allow(dead_code, reason = "each user has its part")]

use netdyno_host::lane::{self, Writer};
use netdyno_host::region::{CONTROL_BYTES, Region};
use netdyno_host::segment::{Segment, map_segment};
use netdyno_stack::vi::Address;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, recvmsg,
    sendmsg, socket_with,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The bytes of an inbox: control words and a message ring.
pub const INBOX_LEN: usize = CONTROL_BYTES + lane::LEN;

/// Returns the name of the socket at which providers of a user wait at a discriminator.
fn name(user: u32, discriminator: &[u8]) -> SocketAddrUnix {
    let mut name = format!("netdyno-vi/{user}/").into_bytes();
    name.extend_from_slice(discriminator);
    SocketAddrUnix::new_abstract_name(&name).unwrap()
}

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// Listens at a name as a provider would.
pub fn squat(user: u32, address: &Address) -> Result<OwnedFd, Errno> {
    let socket = socket();
    bind(&socket, &name(user, &address.discriminator))?;
    listen(&socket, 16)?;
    Ok(socket)
}

/// What was received from the provider.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    Nothing,
    Bytes(Vec<u8>),
    /// The provider has closed the socket.
    Closed,
}

pub struct Stranger {
    socket: OwnedFd,
    pub inbox: Segment,
    /// The provider's inbox, once it has been passed.
    theirs: Option<OwnedFd>,
}

impl Stranger {
    /// Connects to the socket of the provider that waits at the address.
    pub fn connect(user: u32, address: &Address) -> Result<Self, Errno> {
        let socket = socket();
        connect(&socket, &name(user, &address.discriminator))?;
        Ok(Self { socket, inbox: Segment::create(INBOX_LEN).unwrap(), theirs: None })
    }

    /// Sends bytes, and passes a descriptor if one is given.
    pub fn say(&self, bytes: &[u8], passed: Option<BorrowedFd<'_>>) -> Result<usize, Errno> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut room);
        let passed = passed.as_slice();
        if !passed.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(passed));
        }
        sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
    }

    /// Sends bytes and passes its own inbox.
    pub fn say_with_inbox(&self, bytes: &[u8]) -> Result<usize, Errno> {
        self.say(bytes, Some(self.inbox.as_fd()))
    }

    pub fn hear(&mut self) -> Said {
        let mut bytes = [0; 1024];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(mut passed) = message {
                self.theirs = passed.next().or(self.theirs.take());
            }
        }
        match got {
            Ok(got) if got.bytes > 0 => Said::Bytes(bytes[..got.bytes].to_vec()),
            Err(Errno::AGAIN) => Said::Nothing,
            Ok(_) | Err(_) => Said::Closed,
        }
    }

    /// Maps the provider's inbox, in which this side can write anything.
    pub fn theirs(&self) -> Option<Arc<Region>> {
        let theirs = self.theirs.as_ref()?;
        map_segment(0, theirs.as_fd(), INBOX_LEN).ok().map(Arc::new)
    }

    /// Returns the writing end of the ring in the provider's inbox.
    pub fn writer(&self) -> Option<Writer> {
        // SAFETY: the provider in this process only reads from the ring, as if another process wrote to
        // it.
        self.theirs().map(|theirs| unsafe { Writer::new(&theirs, CONTROL_BYTES) })
    }
}
