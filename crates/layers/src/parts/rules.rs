//! The rules of Virtual Interfaces without a transport: descriptors are read and checked, queued, and completed.

use super::Parts;
use netdyno_clock::ticks;
use netdyno_measure::layer::LayerError;
use netdyno_protocol::frame::vi_message::{Head, Kind};
use netdyno_protocol::frame::vi_signal::Address;
use netdyno_protocol::vi::descriptor::SHORT_LEN;
use netdyno_protocol::vi::{
    Arrival, Completion, DescriptorAt, Event, Level, MemAttributes, Nic, NicAttributes, Operation, Progress,
    Segment, Side, ViAttributes, ViHandle, View, Work,
};
use std::fmt::Debug;
use std::hint::black_box;

/// The first address of the registered memory, to which nobody writes: the rules compute with addresses alone.
const BASE: u64 = 1 << 20;
/// The places of both descriptors, and of the bytes of a message.
const MESSAGE: u64 = BASE;
const RECEIVE: u64 = BASE + SHORT_LEN as u64;
const BYTES: u64 = BASE + 2 * SHORT_LEN as u64;

/// The probes of the rules.
#[derive(Clone, Copy)]
pub(super) struct RuleProbes {
    pub(super) post_send: usize,
    pub(super) reap_send: usize,
    pub(super) take: usize,
    pub(super) post_receive: usize,
}

/// How a transport follows the rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// In one step, as over shared memory.
    AtOnce,
    /// In several steps, as over datagrams.
    InSteps,
}

/// One side of a connection whose messages go nowhere.
struct Rules {
    nic: Nic,
    vi: ViHandle,
    handle: u32,
    /// The descriptors of the message and of the receive.
    message: [u8; SHORT_LEN],
    receive: [u8; SHORT_LEN],
    /// The head of the message that arrives.
    head: Head,
    places: Vec<Segment>,
}

/// Adds the run of one message, sent and received. Returns its probes.
pub(super) fn probes(parts: &mut Parts, way: Way, size_bytes: usize) -> Result<RuleProbes, LayerError> {
    let mut rules = Rules::connected(size_bytes)?;
    let names = ["rules: post send", "rules: reap send", "rules: take message", "rules: post receive"];
    let [post_send, reap_send, take, post_receive] = parts.run(1, names, move |_| {
        let began = ticks::now();
        let is_posted = rules.post_send(way);
        let posted = ticks::now();
        let is_reaped = rules.is_done(Side::Send);
        let reaped = ticks::now();
        let is_taken = rules.take(way);
        let taken = ticks::now();
        let is_free = rules.post_receive();
        let ended = ticks::now();
        match is_posted && is_reaped && is_taken && is_free {
            true => Ok([posted - began, reaped - posted, taken - reaped, ended - taken]),
            false => Err(LayerError::new("the rules of Virtual Interfaces refused a message")),
        }
    });
    Ok(RuleProbes { post_send, reap_send, take, post_receive })
}

impl Rules {
    /// Returns one of two sides that are connected. Its receive is posted.
    fn connected(size_bytes: usize) -> Result<Self, LayerError> {
        let len = u32::try_from(size_bytes).map_err(LayerError::new)?;
        let [one, other] = [side(0, len)?, side(1, len)?];
        let (mut nics, vis) = ([one.0, other.0], [one.1, other.1]);
        let mut is_busy = true;
        while is_busy {
            is_busy = false;
            for from in 0..nics.len() {
                while let Some((_, signal)) = nics[from].next_signal() {
                    nics[1 - from].signal(&[from as u8], signal);
                    is_busy = true;
                }
                while nics[from].next_event().is_some() {}
            }
        }
        let [mut nic, _] = nics;
        let is_connected = nic.answer(vis[0]).map_err(refused)?.is_some();
        if !is_connected {
            return Err(LayerError::new("two VIs without a transport did not connect"));
        }
        let descriptor = |operation| {
            let segment = Segment { address: BYTES, handle: one.2, len };
            let segments = [segment].into_iter().collect();
            let work = Work { operation, immediate: None, is_fenced: false, segments, len };
            let mut bytes = [0; SHORT_LEN];
            let laid_out = View::new(&mut bytes[..]).and_then(|mut view| view.set_work(&work));
            laid_out.map(|()| bytes).map_err(refused)
        };
        let (message, receive) = (descriptor(Operation::Send)?, descriptor(Operation::Receive)?);
        let head = Head { number: 0, len, kind: Kind::Send { immediate: None } };
        let mut rules = Self { nic, vi: vis[0], handle: one.2, message, receive, head, places: Vec::new() };
        rules.post_receive().then_some(rules).ok_or_else(|| LayerError::new("no receive was posted"))
    }

    fn at(&self, address: u64) -> DescriptorAt {
        DescriptorAt { address, handle: self.handle }
    }

    #[inline(always)]
    fn post_send(&mut self, way: Way) -> bool {
        let (vi, at) = (self.vi, self.at(MESSAGE));
        let Self { nic, message, .. } = self;
        if way == Way::AtOnce {
            let read = |_| View::new(black_box(&*message)).ok()?.short();
            let sent = nic.send_at_once(vi, at, read, |number, head, part| {
                black_box((number, head, part));
                true
            });
            return sent.is_some_and(|completed| complete(message, &completed.completion));
        }
        let read = |_| View::new(black_box(&*message))?.work(Side::Send);
        if nic.post(vi, Side::Send, at, read).is_err() {
            return false;
        }
        let Some(outgoing) = nic.next(vi) else { return false };
        self.places.clear();
        let len = outgoing.head.len;
        let is_known = self.nic.bytes_of(vi, outgoing.number, 0, len, &mut self.places).is_ok();
        black_box((&outgoing.head, &self.places));
        self.nic.progress(vi, outgoing.number, Progress::Accepted);
        is_known && self.complete_all()
    }

    #[inline(always)]
    fn take(&mut self, way: Way) -> bool {
        let (vi, head) = (self.vi, black_box(self.head));
        self.head.number = head.number.wrapping_add(1);
        if way == Way::AtOnce {
            let place = |part: &Segment| {
                black_box(part);
            };
            let taken = self.nic.take_at_once(vi, &head, place).and_then(|taken| taken.receive);
            return taken.is_some_and(|completed| complete(&mut self.receive, &completed.completion));
        }
        if self.nic.arrive(vi, &head) != Arrival::Place {
            return false;
        }
        self.places.clear();
        let is_placed = self.nic.places(vi, 0, head.len, &mut self.places).is_ok();
        black_box(&self.places);
        self.nic.arrived(vi);
        is_placed && self.complete_all() && self.is_done(Side::Receive)
    }

    #[inline(always)]
    fn post_receive(&mut self) -> bool {
        let (vi, at) = (self.vi, self.at(RECEIVE));
        let Self { nic, receive, .. } = self;
        nic.post(vi, Side::Receive, at, |_| View::new(black_box(&*receive))?.work(Side::Receive)).is_ok()
    }

    #[inline(always)]
    fn is_done(&mut self, side: Side) -> bool {
        matches!(self.nic.done(self.vi, side), Ok(Some(_)))
    }

    /// Writes the completions that are due into the descriptors. Returns whether there was one.
    #[inline(always)]
    fn complete_all(&mut self) -> bool {
        let mut is_any = false;
        while let Some(event) = self.nic.next_event() {
            if let Event::Completed { side, completion, .. } = event {
                let bytes = if side == Side::Send { &mut self.message } else { &mut self.receive };
                is_any |= complete(bytes, &completion);
            }
        }
        is_any
    }
}

/// Writes a completion into a descriptor. Returns true.
#[inline(always)]
fn complete(descriptor: &mut [u8; SHORT_LEN], completion: &Completion) -> bool {
    View::new(&mut descriptor[..]).is_ok_and(|mut view| {
        view.set_completion(completion);
        black_box(&view);
        true
    })
}

/// Returns the error for what the rules refuse, although they allow it.
fn refused(error: impl Debug) -> LayerError {
    LayerError(format!("the rules of Virtual Interfaces refused: {error:?}"))
}

/// Returns a side that asks its peer for a connection, its VI, and the handle of its memory.
fn side(which: u8, len: u32) -> Result<(Nic, ViHandle, u32), LayerError> {
    let mut nic = Nic::new(NicAttributes::default());
    let tag = nic.create_tag().map_err(refused)?;
    let memory = MemAttributes { tag, can_be_written: false, can_be_read: false };
    let bytes = BYTES - BASE + u64::from(len);
    let handle = nic.register(BASE, bytes, memory).map_err(refused)?;
    let attributes = ViAttributes {
        level: Level::Delivery,
        transfer_bytes: len.max(1),
        qos: 0,
        tag,
        can_be_written: false,
        can_be_read: false,
    };
    let vi = nic.create_vi(attributes, None, None).map_err(refused)?;
    let address = |which: u8| Address { host: vec![which], discriminator: b"rules".to_vec() };
    let names = [address(which), address(1 - which)];
    nic.ask(vi, names, true, u64::from(which) + 1, None, 0).map_err(refused)?;
    Ok((nic, vi, handle.0))
}
