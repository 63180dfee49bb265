//! The guarantees of a provider, one statement a test (VIA 1.0).

mod connecting;
mod descriptors;
mod levels;
mod rdma;

use crate::world::{BASE, Host, Packet, World, address, fragments, work};
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_message::{Head, Kind};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::*;

const DONE_SEND: Status = Status::DONE.with(Status::OP_SEND);
const DONE_RECEIVE: Status = Status::DONE.with(Status::OP_RECEIVE);
const RELIABLE: [Level; 2] = [Level::Delivery, Level::Reception];

/// Posts a send of `text` from the beginning of the memory.
fn send(world: &mut World, at: usize, vi: ViHandle, text: &[u8]) -> DescriptorAt {
    let host = &mut world.hosts[at];
    let segment = host.segment(0, text.len() as u32);
    host.memory(segment.address, segment.len).copy_from_slice(text);
    host.post(vi, Side::Send, &work(Operation::Send, &[segment]))
}

/// Posts a receive of `len` bytes at `offset`.
fn receive(world: &mut World, at: usize, vi: ViHandle, offset: u64, len: u32) -> DescriptorAt {
    let host = &mut world.hosts[at];
    let segment = host.segment(offset, len);
    host.post(vi, Side::Receive, &work(Operation::Receive, &[segment]))
}

/// Returns an RDMA of `len` bytes between the beginning of host 0's memory and `offset` in host 1's.
fn rdma(world: &World, is_write: bool, offset: u64, len: u32) -> Work {
    let remote = Remote { address: BASE + offset, handle: world.hosts[1].all.0 };
    let operation = if is_write { Operation::Write(remote) } else { Operation::Read(remote) };
    work(operation, &[world.hosts[0].segment(0, len)])
}

fn status(world: &mut World, at: usize, descriptor: DescriptorAt) -> Status {
    world.hosts[at].status(descriptor).status
}

fn state(world: &World, at: usize, vi: ViHandle) -> State {
    world.hosts[at].nic.query_vi(vi).unwrap().state
}

fn flushed(operation: Status) -> Status {
    Status::DONE.with(operation).with(Status::FLUSHED)
}

fn failed(operation: Status, error: Status) -> Status {
    Status::DONE.with(operation).with(error)
}
