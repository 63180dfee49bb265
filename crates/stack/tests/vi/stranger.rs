//! A process that speaks to a provider over shared memory without being one: whatever it likes.

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

/// Bytes of an inbox: a control block of words, and a lane.
pub const INBOX_LEN: usize = CONTROL_BYTES + lane::LEN;

/// Where those of a user wait at a discriminator.
fn name(user: u32, discriminator: &[u8]) -> SocketAddrUnix {
    let mut name = format!("netdyno-vi/{user}/").into_bytes();
    name.extend_from_slice(discriminator);
    SocketAddrUnix::new_abstract_name(&name).unwrap()
}

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// Takes a name as if it were a provider's.
pub fn squat(user: u32, address: &Address) -> Result<OwnedFd, Errno> {
    let socket = socket();
    bind(&socket, &name(user, &address.discriminator))?;
    listen(&socket, 16)?;
    Ok(socket)
}

/// What a provider has said.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    Nothing,
    Bytes(Vec<u8>),
    /// It has closed the socket.
    Closed,
}

pub struct Stranger {
    socket: OwnedFd,
    pub inbox: Segment,
    /// The provider's, once it has passed one.
    theirs: Option<OwnedFd>,
}

impl Stranger {
    /// A socket to whoever waits there.
    pub fn connect(user: u32, address: &Address) -> Result<Self, Errno> {
        let socket = socket();
        connect(&socket, &name(user, &address.discriminator))?;
        Ok(Self { socket, inbox: Segment::create(INBOX_LEN).unwrap(), theirs: None })
    }

    /// Says something, and passes memory of its own, or whatever else.
    pub fn say(&self, bytes: &[u8], passed: Option<BorrowedFd<'_>>) -> Result<usize, Errno> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut room);
        let passed = passed.as_slice();
        if !passed.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(passed));
        }
        sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
    }

    /// The same with its inbox.
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

    /// The provider's inbox, in which this side can write anything.
    pub fn theirs(&self) -> Option<Arc<Region>> {
        let theirs = self.theirs.as_ref()?;
        map_segment(0, theirs.as_fd(), INBOX_LEN).ok().map(Arc::new)
    }

    /// The end of its lane that a peer writes to.
    pub fn writer(&self) -> Option<Writer> {
        // SAFETY: in this process the provider reads there, as it does what others write.
        self.theirs().map(|theirs| unsafe { Writer::new(&theirs, CONTROL_BYTES) })
    }
}
