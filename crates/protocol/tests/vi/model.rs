//! The reference model of a provider. It keeps everything in lists, searches them from the beginning,
//! forgets nothing and checks each byte by itself. It is slow and follows the order of the rules.

use crate::world::{BASE, PIECE_LEN};
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal};
use netdyno_protocol::vi::*;

/// The reports to the program and to the error callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Completed(ViHandle, Side, DescriptorAt, Completion),
    Failed(AsyncError, Option<ViHandle>),
    Callback(ViHandle, Side, DescriptorAt),
    CqCallback(CqHandle, ViHandle, Side),
}

/// The answers to a message of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    InPlace,
    Refused(Refusal),
    Fetched(Vec<u8>),
}

/// The events that can interrupt a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Deregistered(u64, MemHandle),
    Lost(ViHandle),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    UnderWay,
    /// It waits for the descriptors before it.
    Finished(Completion),
    /// The program can take it.
    Complete,
    Taken,
}

#[derive(Clone, Debug)]
struct Posted {
    at: DescriptorAt,
    /// `None` if the descriptor is malformed.
    work: Option<Work>,
    phase: Phase,
}

#[derive(Clone, Debug)]
pub struct ModelVi {
    pub handle: ViHandle,
    pub attributes: ViAttributes,
    pub state: State,
    pub link: Option<Link>,
    cqs: [Option<CqHandle>; 2],
    queues: [Vec<Posted>; 2],
    callbacks: [u32; 2],
    /// The message that is arriving in pieces, and how many of its bytes have come.
    coming: Option<(Head, u32)>,
    /// The numbers of all messages that began to arrive in pieces.
    begun: Vec<u32>,
}

#[derive(Clone, Debug)]
struct ModelCq {
    handle: CqHandle,
    most: usize,
    entries: Vec<(ViHandle, Side)>,
    callbacks: u32,
}

/// The reference model of one host.
pub struct Model {
    pub bytes: Vec<u8>,
    pub regions: Vec<(MemHandle, Region)>,
    pub vis: Vec<ModelVi>,
    cqs: Vec<ModelCq>,
    pub told: Vec<Told>,
    /// Most descriptors of a queue.
    most: usize,
}

const SIDES: [Side; 2] = [Side::Send, Side::Receive];

fn nth(side: Side) -> usize {
    usize::from(side == Side::Receive)
}

fn operation(side: Side, posted: &Posted) -> Status {
    match (&posted.work, side) {
        (Some(work), _) => work.operation.status(),
        (None, Side::Send) => Status::OP_SEND,
        (None, Side::Receive) => Status::OP_RECEIVE,
    }
}

impl Model {
    pub fn new(bytes: Vec<u8>, most: u32) -> Self {
        let most = most as usize;
        Self { bytes, regions: Vec::new(), vis: Vec::new(), cqs: Vec::new(), told: Vec::new(), most }
    }

    pub fn add_vi(&mut self, handle: ViHandle, attributes: ViAttributes, cqs: [Option<CqHandle>; 2]) {
        self.vis.push(ModelVi {
            handle,
            attributes,
            state: State::Idle,
            link: None,
            cqs,
            queues: [Vec::new(), Vec::new()],
            callbacks: [0; 2],
            coming: None,
            begun: Vec::new(),
        });
        // A provider visits its VIs in the order of the slots in their handles.
        self.vis.sort_by_key(|vi| vi.handle.0 & 0xffff);
    }

    pub fn remove_vi(&mut self, vi: ViHandle) {
        self.vis.retain(|other| other.handle != vi);
        self.cqs.iter_mut().for_each(|queue| queue.entries.retain(|(other, _)| *other != vi));
    }

    pub fn add_cq(&mut self, handle: CqHandle, most: u32) {
        self.cqs.push(ModelCq { handle, most: most as usize, entries: Vec::new(), callbacks: 0 });
    }

    pub fn deregister(&mut self, address: u64, handle: MemHandle) -> bool {
        let before = self.regions.len();
        self.regions.retain(|(other, region)| *other != handle || region.address != address);
        self.regions.len() < before
    }

    /// Reports whether access to every byte is allowed.
    fn may_use(&self, tag: Ptag, segment: &Segment, access: Access) -> bool {
        let Segment { address, handle, len } = *segment;
        let Some((_, region)) = self.regions.iter().find(|(other, _)| other.0 == handle) else {
            // A local segment without bytes uses no memory. A remote one must still name a region.
            return len == 0 && access == Access::Local;
        };
        let bytes = region.address..region.address + region.len;
        let is_open = match access {
            Access::Local => true,
            Access::PeerWrites => region.attributes.can_be_written,
            Access::PeerReads => region.attributes.can_be_read,
        };
        if len == 0 {
            let is_in = bytes.contains(&address) || address == bytes.end;
            return access == Access::Local || is_in && is_open && region.attributes.tag == tag;
        }
        (address..address + u64::from(len)).all(|byte| bytes.contains(&byte))
            && region.attributes.tag == tag
            && is_open
    }

    pub fn vi(&self, vi: ViHandle) -> &ModelVi {
        self.vis.iter().find(|other| other.handle == vi).unwrap()
    }

    pub fn vi_mut(&mut self, vi: ViHandle) -> &mut ModelVi {
        self.vis.iter_mut().find(|other| other.handle == vi).unwrap()
    }

    fn is_reliable(&self, vi: ViHandle) -> bool {
        self.vi(vi).attributes.level != Level::Unreliable
    }

    pub fn is_empty(&self, vi: ViHandle, side: Side) -> bool {
        self.vi(vi).queues[nth(side)].iter().all(|posted| posted.phase == Phase::Taken)
    }

    pub fn post(
        &mut self,
        vi: ViHandle,
        side: Side,
        at: DescriptorAt,
        work: Option<Work>,
    ) -> Result<(), PostError> {
        if !at.address.is_multiple_of(64) {
            return Err(PostError::Misaligned);
        }
        if !self.may_write_descriptor(vi, at) {
            return Err(PostError::NotRegistered);
        }
        let most = self.most;
        let endpoint = self.vi_mut(vi);
        let queue = &mut endpoint.queues[nth(side)];
        if queue.iter().filter(|posted| posted.phase != Phase::Taken).count() >= most {
            return Err(PostError::Full);
        }
        queue.push(Posted { at, work, phase: Phase::Waiting });
        let state = endpoint.state;
        // A send needs a connection. A receive may be posted before there is one, but not in the state
        // ERROR.
        if side == Side::Send && state != State::Connected || state == State::Error {
            self.flush(vi, side);
            self.settle(vi);
        }
        Ok(())
    }

    fn may_write_descriptor(&self, vi: ViHandle, at: DescriptorAt) -> bool {
        let DescriptorAt { address, handle } = at;
        self.may_use(self.vi(vi).attributes.tag, &Segment { address, handle, len: 32 }, Access::Local)
    }

    fn flush(&mut self, vi: ViHandle, side: Side) {
        for posted in &mut self.vi_mut(vi).queues[nth(side)] {
            if matches!(posted.phase, Phase::Waiting | Phase::UnderWay) {
                let status = Status::DONE.with(operation(side, posted)).with(Status::FLUSHED);
                posted.phase = Phase::Finished(Completion { status, len: 0, immediate: None });
            }
        }
    }

    fn finish(&mut self, vi: ViHandle, side: Side, number: usize, completion: Completion) {
        let posted = &mut self.vi_mut(vi).queues[nth(side)][number];
        let status = Status::DONE.with(operation(side, posted)).with(completion.status);
        posted.phase = Phase::Finished(Completion { status, ..completion });
    }

    fn break_vi(&mut self, vi: ViHandle, error: Option<AsyncError>) {
        let endpoint = self.vi_mut(vi);
        if matches!(endpoint.state, State::Idle | State::Error) {
            return;
        }
        endpoint.state = State::Error;
        self.part(vi);
        self.told.extend(error.map(|error| Told::Failed(error, Some(vi))));
    }

    fn part(&mut self, vi: ViHandle) {
        SIDES.into_iter().for_each(|side| self.flush(vi, side));
        let endpoint = self.vi_mut(vi);
        endpoint.link = None;
        endpoint.coming = None;
        endpoint.begun.clear();
    }

    pub fn disconnect(&mut self, vi: ViHandle) {
        self.vi_mut(vi).state = State::Idle;
        self.part(vi);
        self.settle(vi);
    }

    /// Reports that the peer has ended the connection.
    pub fn left(&mut self, vi: ViHandle) {
        self.break_vi(vi, Some(AsyncError::ConnLost));
        self.settle(vi);
    }

    pub fn fail(&mut self) {
        self.told.push(Told::Failed(AsyncError::Catastrophic, None));
        for vi in self.vis.iter().map(|vi| vi.handle).collect::<Vec<_>>() {
            self.break_vi(vi, None);
            self.settle(vi);
        }
    }

    /// Reports whether a write is arriving in pieces.
    pub fn is_being_written(&self, vi: ViHandle) -> bool {
        self.vi(vi).coming.is_some_and(|(head, _)| matches!(head.kind, Kind::Write { .. }))
    }

    pub fn lost(&mut self, vi: ViHandle, is_written: bool) {
        if self.vi(vi).state != State::Connected {
            return;
        }
        let sends = &self.vi(vi).queues[0];
        let under_way = |posted: &&Posted| posted.phase == Phase::UnderWay;
        let is_rdma = sends.iter().filter(under_way).any(|posted| {
            let operation = posted.work.as_ref().map(|work| work.operation);
            matches!(operation, Some(Operation::Write(_) | Operation::Read(_)))
        });
        if let Some(oldest) = sends.iter().position(|posted| posted.phase == Phase::UnderWay) {
            let status = Status::TRANSPORT_ERROR;
            self.finish(vi, Side::Send, oldest, Completion { status, len: 0, immediate: None });
        }
        let error = if is_written {
            AsyncError::RdmawAbort
        } else if is_rdma {
            AsyncError::RdmaTransport
        } else {
            AsyncError::ConnLost
        };
        self.break_vi(vi, Some(error));
        self.settle(vi);
    }

    /// Completes all finished descriptors, in the order of posting.
    fn settle(&mut self, vi: ViHandle) {
        loop {
            let next = SIDES.into_iter().find_map(|side| {
                let queue = &self.vi(vi).queues[nth(side)];
                let is_open = |posted: &Posted| !matches!(posted.phase, Phase::Complete | Phase::Taken);
                let first = queue.iter().position(is_open)?;
                match queue[first].phase {
                    Phase::Finished(completion) => Some((side, first, completion)),
                    _ => None,
                }
            });
            let Some((side, first, completion)) = next else { break };
            self.vi_mut(vi).queues[nth(side)][first].phase = Phase::Complete;
            self.announce(vi, side, first, completion);
        }
        SIDES.into_iter().for_each(|side| self.call_back(vi, side));
    }

    fn announce(&mut self, vi: ViHandle, side: Side, number: usize, completion: Completion) {
        let at = self.vi(vi).queues[nth(side)][number].at;
        if self.may_write_descriptor(vi, at) {
            self.told.push(Told::Completed(vi, side, at, completion));
            let place = (at.address - BASE) as usize;
            View::new(&mut self.bytes[place..place + 32]).unwrap().set_completion(&completion);
        } else {
            self.told.push(Told::Failed(AsyncError::CompProt, Some(vi)));
            if self.is_reliable(vi) {
                self.break_vi(vi, None);
            }
        }
        let Some(cq) = self.vi(vi).cqs[nth(side)] else { return };
        let queue = self.cqs.iter_mut().find(|queue| queue.handle == cq).unwrap();
        if queue.entries.len() < queue.most {
            queue.entries.push((vi, side));
        } else if self.vi(vi).state != State::Error && !completion.status.has(Status::FLUSHED) {
            self.told.push(Told::Failed(AsyncError::ViOverrun, Some(vi)));
            self.break_vi(vi, None);
        }
        self.call_back_cq(cq);
    }

    pub fn done(&mut self, vi: ViHandle, side: Side) -> Option<DescriptorAt> {
        let queue = &mut self.vi_mut(vi).queues[nth(side)];
        let first = queue.iter_mut().find(|posted| posted.phase != Phase::Taken)?;
        if first.phase != Phase::Complete {
            return None;
        }
        first.phase = Phase::Taken;
        Some(first.at)
    }

    pub fn notify(&mut self, vi: ViHandle, side: Side) {
        self.vi_mut(vi).callbacks[nth(side)] += 1;
        self.call_back(vi, side);
    }

    fn call_back(&mut self, vi: ViHandle, side: Side) {
        while self.vi(vi).callbacks[nth(side)] > 0 {
            let Some(at) = self.done(vi, side) else { break };
            self.vi_mut(vi).callbacks[nth(side)] -= 1;
            self.told.push(Told::Callback(vi, side, at));
        }
    }

    fn cq(&mut self, cq: CqHandle) -> &mut ModelCq {
        self.cqs.iter_mut().find(|queue| queue.handle == cq).unwrap()
    }

    pub fn cq_done(&mut self, cq: CqHandle) -> Option<(ViHandle, Side)> {
        let queue = self.cq(cq);
        if queue.entries.is_empty() { None } else { Some(queue.entries.remove(0)) }
    }

    pub fn resize_cq(&mut self, cq: CqHandle, most: u32) -> bool {
        let queue = self.cq(cq);
        let fits = queue.entries.len() <= most as usize;
        if fits {
            queue.most = most as usize;
        }
        fits
    }

    pub fn notify_cq(&mut self, cq: CqHandle) {
        self.cq(cq).callbacks += 1;
        self.call_back_cq(cq);
    }

    fn call_back_cq(&mut self, cq: CqHandle) {
        while self.cq(cq).callbacks > 0 {
            let Some((vi, side)) = self.cq_done(cq) else { break };
            self.cq(cq).callbacks -= 1;
            self.told.push(Told::CqCallback(cq, vi, side));
        }
    }

    /// Returns the fault of a descriptor of whose memory `used` bytes are used.
    fn fault(&self, vi: ViHandle, posted: &Posted, used: u32) -> Option<Status> {
        let endpoint = self.vi(vi);
        let Some(work) = &posted.work else { return Some(Status::FORMAT_ERROR) };
        match work.operation {
            Operation::Read(_) if endpoint.attributes.level == Level::Unreliable => {
                return Some(Status::FORMAT_ERROR);
            }
            Operation::Receive => {}
            _ if work.len > endpoint.attributes.transfer_bytes => return Some(Status::LENGTH_ERROR),
            _ => {}
        }
        let tag = endpoint.attributes.tag;
        let mut left = used;
        let may = work.segments.as_slice().iter().all(|segment| {
            let len = segment.len.min(left);
            left -= len;
            self.may_use(tag, &Segment { len, ..*segment }, Access::Local)
        });
        if may { None } else { Some(Status::PROTECTION_ERROR) }
    }

    /// Returns the number of the next descriptor to send.
    pub fn next(&mut self, vi: ViHandle) -> Option<usize> {
        loop {
            if self.vi(vi).state != State::Connected {
                return None;
            }
            let queue = &self.vi(vi).queues[0];
            let next = queue.iter().position(|posted| posted.phase == Phase::Waiting)?;
            let is_complete = |posted: &Posted| matches!(posted.phase, Phase::Complete | Phase::Taken);
            let all_before = queue[..next].iter().all(is_complete);
            let is_fenced = queue[next].work.as_ref().is_some_and(|work| work.is_fenced);
            let fault = self.fault(vi, &queue[next], u32::MAX);
            if (is_fenced || fault.is_some()) && !all_before {
                return None;
            }
            let Some(status) = fault else {
                self.vi_mut(vi).queues[0][next].phase = Phase::UnderWay;
                return Some(next);
            };
            self.fail_work(vi, next, status, AsyncError::PostDesc);
        }
    }

    fn fail_work(&mut self, vi: ViHandle, number: usize, status: Status, error: AsyncError) {
        self.finish(vi, Side::Send, number, Completion { status, len: 0, immediate: None });
        if self.is_reliable(vi) {
            self.break_vi(vi, Some(error));
        }
        self.settle(vi);
    }

    pub fn work(&self, vi: ViHandle, number: usize) -> &Work {
        self.vi(vi).queues[0][number].work.as_ref().unwrap()
    }

    /// Returns the bytes of a message, or `None` if its memory may no longer be read.
    pub fn gather(&mut self, vi: ViHandle, number: usize) -> Option<Vec<u8>> {
        let work = self.work(vi, number).clone();
        if self.fault(vi, &self.vi(vi).queues[0][number].clone(), u32::MAX).is_some() {
            self.fail_work(vi, number, Status::PROTECTION_ERROR, AsyncError::PostDesc);
            return None;
        }
        let bytes = work.segments.as_slice().iter().flat_map(|segment| self.read(segment).to_vec());
        Some(bytes.collect())
    }

    fn read(&self, segment: &Segment) -> &[u8] {
        if segment.len == 0 {
            return &[];
        }
        let at = (segment.address - BASE) as usize;
        &self.bytes[at..at + segment.len as usize]
    }

    pub fn progress(&mut self, vi: ViHandle, number: usize, progress: Progress) {
        let level = self.vi(vi).attributes.level;
        let posted = &self.vi(vi).queues[0][number];
        if posted.phase != Phase::UnderWay {
            if matches!(progress, Progress::Refused(_)) && level != Level::Unreliable {
                self.break_vi(vi, Some(AsyncError::ConnLost));
                self.settle(vi);
            }
            return;
        }
        let work = posted.work.clone().unwrap();
        let is_read = matches!(work.operation, Operation::Read(_));
        let is_done = match progress {
            Progress::Accepted => !is_read && level != Level::Reception,
            Progress::Received => !is_read,
            Progress::Fetched => is_read,
            Progress::Refused(refusal) => {
                let status = match refusal {
                    Refusal::NoReceive | Refusal::TooLong | Refusal::BadReceive => Status::REMOTE_DESC_ERROR,
                    Refusal::WriteDenied | Refusal::ReadDenied => Status::RDMA_PROT_ERROR,
                    Refusal::NotConnected => Status::TRANSPORT_ERROR,
                };
                return self.fail_work(vi, number, status, AsyncError::ConnLost);
            }
        };
        if is_done {
            let completion = Completion { status: Status(0), len: work.len, immediate: None };
            self.finish(vi, Side::Send, number, completion);
            self.settle(vi);
        }
    }

    /// Places the bytes of an RDMA read of this side.
    pub fn fetched(&mut self, vi: ViHandle, number: usize, bytes: &[u8]) {
        if self.vi(vi).queues[0][number].phase != Phase::UnderWay {
            return;
        }
        let work = self.work(vi, number).clone();
        if self.fault(vi, &self.vi(vi).queues[0][number].clone(), u32::MAX).is_some() {
            return self.fail_work(vi, number, Status::PROTECTION_ERROR, AsyncError::PostDesc);
        }
        self.scatter(work.segments.as_slice(), 0, bytes);
        self.progress(vi, number, Progress::Fetched);
    }

    /// Writes bytes into consecutive segments, from byte `at` of the segments on.
    fn scatter(&mut self, segments: &[Segment], at: usize, bytes: &[u8]) {
        let places = segments.iter().flat_map(|s| s.address..s.address + u64::from(s.len));
        let places: Vec<u64> = places.skip(at).collect();
        for (place, byte) in places.into_iter().zip(bytes) {
            self.bytes[(place - BASE) as usize] = *byte;
        }
    }

    fn next_receive(&self, vi: ViHandle) -> Option<usize> {
        self.vi(vi).queues[1].iter().position(|posted| posted.phase == Phase::Waiting)
    }

    /// Returns the last segment of the next receive.
    pub fn next_place(&self, vi: ViHandle) -> Option<Segment> {
        let receive = &self.vi(vi).queues[1][self.next_receive(vi)?];
        receive.work.as_ref()?.segments.as_slice().last().copied()
    }

    /// Returns the reason to refuse a message: the status of its receive, the error for the callback
    /// and the refusal for the peer.
    fn trouble(&self, vi: ViHandle, head: &Head) -> Option<(Option<Status>, AsyncError, Refusal)> {
        let ViAttributes { tag, can_be_written, can_be_read, level, .. } = self.vi(vi).attributes;
        let receive = self.next_receive(vi);
        let fault = receive.and_then(|receive| self.fault(vi, &self.vi(vi).queues[1][receive], head.len));
        let memory = |Remote { address, handle }| Segment { address, handle, len: head.len };
        let no_receive = Some((None, AsyncError::RecvqEmpty, Refusal::NoReceive));
        match head.kind {
            Kind::Send { .. } => {
                let Some(receive) = receive else { return no_receive };
                if let Some(status) = fault {
                    return Some((Some(status), AsyncError::ConnLost, Refusal::BadReceive));
                }
                let room = self.vi(vi).queues[1][receive].work.as_ref().unwrap().len;
                let is_too_long = room < head.len;
                is_too_long.then_some((Some(Status::LENGTH_ERROR), AsyncError::ConnLost, Refusal::TooLong))
            }
            Kind::Write { remote, immediate } => {
                if !can_be_written || !self.may_use(tag, &memory(remote), Access::PeerWrites) {
                    let denied = Status::OP_REMOTE_WRITE.with(Status::RDMA_PROT_ERROR);
                    let told = match immediate.and(receive) {
                        Some(_) => (Some(denied), AsyncError::ConnLost),
                        None => (None, AsyncError::RdmawProt),
                    };
                    return Some((told.0, told.1, Refusal::WriteDenied));
                }
                if immediate.is_some() && receive.is_none() {
                    return no_receive;
                }
                let is_none = fault == Some(Status::FORMAT_ERROR) && immediate.is_some();
                is_none.then_some((fault, AsyncError::ConnLost, Refusal::BadReceive))
            }
            Kind::Read { remote } => {
                let may = can_be_read
                    && level != Level::Unreliable
                    && self.may_use(tag, &memory(remote), Access::PeerReads);
                if may { None } else { Some((None, AsyncError::RdmarProt, Refusal::ReadDenied)) }
            }
        }
    }

    fn refuse(&mut self, vi: ViHandle, trouble: (Option<Status>, AsyncError, Refusal)) {
        let (status, error, _) = trouble;
        if let (Some(status), Some(receive)) = (status, self.next_receive(vi)) {
            self.finish(vi, Side::Receive, receive, Completion { status, len: 0, immediate: None });
        }
        if self.is_reliable(vi) {
            self.break_vi(vi, Some(error));
        } else if error == AsyncError::RdmawProt {
            self.told.push(Told::Failed(error, Some(vi)));
        }
        self.settle(vi);
    }

    /// Delivers a message of the peer on a reliable VI, piece by piece.
    pub fn deliver(
        &mut self,
        vi: ViHandle,
        head: &Head,
        bytes: &[u8],
        interruption: Option<Interruption>,
    ) -> Option<Reply> {
        let mut fetched = Vec::new();
        for at in (0..head.len).step_by(PIECE_LEN as usize).chain((head.len == 0).then_some(0)) {
            let len = PIECE_LEN.min(head.len - at);
            // Each piece checks again whether the message is allowed. Of the segments of a receive only
            // the part for the piece is checked.
            if let Some(trouble) = self.trouble_of_piece(vi, head, at, len) {
                self.refuse(vi, trouble);
                return Some(Reply::Refused(trouble.2));
            }
            if let Kind::Read { remote: Remote { address, handle } } = head.kind {
                let address = address + u64::from(at);
                fetched.extend_from_slice(self.read(&Segment { address, handle, len }));
            } else {
                self.place(vi, head, at, &bytes[at as usize..(at + len) as usize]);
            }
            match interruption.filter(|_| at == 0 && len > 0) {
                Some(Interruption::Deregistered(address, handle)) => {
                    self.deregister(address, handle);
                }
                Some(Interruption::Lost(vi)) => {
                    self.lost(vi, matches!(head.kind, Kind::Write { .. }));
                    return None;
                }
                None => {}
            }
        }
        if matches!(head.kind, Kind::Read { .. }) {
            return Some(Reply::Fetched(fetched));
        }
        self.arrived(vi, head);
        Some(Reply::InPlace)
    }

    fn trouble_of_piece(
        &self,
        vi: ViHandle,
        head: &Head,
        at: u32,
        len: u32,
    ) -> Option<(Option<Status>, AsyncError, Refusal)> {
        if at == 0 {
            return self.trouble(vi, head);
        }
        if !matches!(head.kind, Kind::Send { .. }) {
            // The receive was checked when the message began.
            let is_denied = |refusal| matches!(refusal, Refusal::WriteDenied | Refusal::ReadDenied);
            return self.trouble(vi, head).filter(|(_, _, refusal)| is_denied(*refusal));
        }
        let receive = &self.vi(vi).queues[1][self.next_receive(vi)?];
        let segments = receive.work.as_ref()?.segments.as_slice();
        let tag = self.vi(vi).attributes.tag;
        let bytes = segments.iter().flat_map(|segment| {
            let Segment { address, handle, len } = *segment;
            (address..address + u64::from(len)).map(move |address| Segment { address, handle, len: 1 })
        });
        let mut piece = bytes.skip(at as usize).take(len as usize);
        let may = piece.all(|byte| self.may_use(tag, &byte, Access::Local));
        (!may).then_some((Some(Status::PROTECTION_ERROR), AsyncError::ConnLost, Refusal::BadReceive))
    }

    fn place(&mut self, vi: ViHandle, head: &Head, at: u32, bytes: &[u8]) {
        let segments = match head.kind {
            Kind::Write { remote: Remote { address, handle }, .. } => {
                vec![Segment { address, handle, len: head.len }]
            }
            _ => {
                let receive = self.next_receive(vi).unwrap();
                self.vi(vi).queues[1][receive].work.as_ref().unwrap().segments.as_slice().to_vec()
            }
        };
        self.scatter(&segments, at as usize, bytes);
    }

    fn arrived(&mut self, vi: ViHandle, head: &Head) {
        let (status, immediate) = match head.kind {
            Kind::Send { immediate } => (Status::OP_RECEIVE, immediate),
            Kind::Write { immediate, .. } if immediate.is_some() => (Status::OP_REMOTE_WRITE, immediate),
            _ => return,
        };
        let status = if immediate.is_some() { status.with(Status::IMMEDIATE) } else { status };
        let receive = self.next_receive(vi).unwrap();
        self.finish(vi, Side::Receive, receive, Completion { status, len: head.len, immediate });
        self.settle(vi);
    }

    /// Delivers a piece of a message on an unreliable VI.
    pub fn deliver_piece(&mut self, vi: ViHandle, head: &Head, at: u32, bytes: &[u8]) {
        let len = bytes.len() as u32;
        let endpoint = self.vi_mut(vi);
        let goes_on = endpoint.coming == Some((*head, at)) && at > 0;
        let is_new = at == 0 && endpoint.begun.iter().all(|number| *number < head.number);
        if !goes_on && !is_new {
            return;
        }
        if is_new {
            endpoint.begun.push(head.number);
        }
        endpoint.coming = None;
        if let Some(trouble) = self.trouble_of_piece(vi, head, at, len) {
            return self.refuse(vi, trouble);
        }
        self.place(vi, head, at, bytes);
        if at + len == head.len {
            self.arrived(vi, head);
        } else {
            self.vi_mut(vi).coming = Some((*head, at + len));
        }
    }
}
