//! Virtual Interfaces over shared memory.

use super::provider::OpenError;
use super::wire::Wire;
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::{Link, Nic, Parting, ViHandle};
use std::os::fd::BorrowedFd;
use std::time::Duration;

pub(super) struct ShmWire;

impl ShmWire {
    pub(super) fn open() -> Result<Self, OpenError> {
        Err(OpenError::System { what: "make shared memory", error: std::io::ErrorKind::Unsupported.into() })
    }
}

impl Wire for ShmWire {
    fn host(&self) -> Vec<u8> {
        Vec::new()
    }
    fn now_ns(&mut self) -> u64 {
        0
    }
    fn listen(&mut self, _: &[u8]) {}
    fn ignore(&mut self, _: &[u8]) {}
    fn say(&mut self, _: &mut Nic, _: &[u8], _: &Signal) {}
    fn hear(&mut self, _: &mut Nic) {}
    fn link(&mut self, _: &mut Nic, _: ViHandle, _: &Link) {}
    fn unlink(&mut self, _: &mut Nic, _: ViHandle, _: Parting) {}
    fn send(&mut self, _: &mut Nic, _: ViHandle) {}
    fn receive(&mut self, _: &mut Nic, _: ViHandle) -> bool {
        false
    }
    fn receive_all(&mut self, _: &mut Nic) -> bool {
        false
    }
    fn prepare_sleep(&mut self) -> Duration {
        Duration::ZERO
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        unimplemented!()
    }
    fn linger(&mut self, _: &mut Nic) {}
}
