//! The program's handlers, and the events that they are called for.
//!
//! A handler is registered for one completion. The provider reports completions in their order, and the
//! handlers of a queue are called in the order in which they were registered.

use crate::abi::{CqCallback, Descriptor, ErrorDescriptor, ErrorHandler, ViCallback};
use crate::handle::{Handled, Opaque};
use crate::nic::id::NicId;
use netdyno_stack::vi::{AsyncError, CqHandle, DescriptorAt, Failure, News, Resource, Side, ViHandle};
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::ptr;

/// The context that a program passes with a handler and gets back in the call.
#[derive(Clone, Copy)]
pub struct Context(pub Opaque);

// SAFETY: the pointer is passed back to the program and never followed here.
unsafe impl Send for Context {}

/// Handlers of one queue, in the order of registration.
type Queue<H> = VecDeque<(H, Context)>;

/// The handlers of a NIC, and the events that they are still to be called for.
#[derive(Default)]
pub struct Callbacks {
    /// By VI, and whether the queue is the receive queue.
    vis: HashMap<(ViHandle, bool), Queue<ViCallback>>,
    cqs: HashMap<CqHandle, Queue<CqCallback>>,
    error: Option<(ErrorHandler, Context)>,
    news: VecDeque<News>,
    /// The handler that is called now.
    running: Option<Kind>,
}

/// What a handler is registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Vi(ViHandle),
    Cq(CqHandle),
    Error,
}

/// A call of a handler. It is made while no lock is held.
pub enum Call {
    Vi(ViCallback, Context, NicId, ViHandle, DescriptorAt),
    Cq(CqCallback, Context, NicId, CqHandle, ViHandle, Side),
    Error(Option<(ErrorHandler, Context)>, NicId, Failure),
}

impl Callbacks {
    /// Registers a handler for the next completed descriptor of a queue.
    pub fn await_vi(&mut self, vi: ViHandle, side: Side, handler: ViCallback, context: Context) {
        self.vis.entry((vi, side == Side::Receive)).or_default().push_back((handler, context));
    }

    /// Registers a handler for the next entry of a completion queue.
    pub fn await_cq(&mut self, cq: CqHandle, handler: CqCallback, context: Context) {
        self.cqs.entry(cq).or_default().push_back((handler, context));
    }

    /// Sets the handler for errors. Without a handler, errors are written to stderr.
    pub fn set_error(&mut self, handler: Option<ErrorHandler>, context: Context) {
        self.error = handler.map(|handler| (handler, context));
    }

    /// Removes the handlers of a destroyed VI.
    pub fn forget_vi(&mut self, vi: ViHandle) {
        self.vis.retain(|(of, _), _| *of != vi);
    }

    /// Removes the handlers of a destroyed completion queue.
    pub fn forget_cq(&mut self, cq: CqHandle) {
        self.cqs.remove(&cq);
    }

    /// Adds an event.
    pub fn note(&mut self, news: News) {
        self.news.push_back(news);
    }

    /// Returns whether there are events.
    pub fn are_due(&self) -> bool {
        !self.news.is_empty()
    }

    /// Reports that a handler is called that was registered for this.
    pub fn is_running(&self, kind: Kind) -> bool {
        self.running == Some(kind)
    }

    /// Takes events until one has a handler, and returns its call. The call before has ended.
    pub fn next(&mut self, nic: NicId) -> Option<Call> {
        let call = self.take(nic);
        self.running = call.as_ref().map(Call::kind);
        call
    }

    fn take(&mut self, nic: NicId) -> Option<Call> {
        while let Some(news) = self.news.pop_front() {
            let call = match news {
                News::Done { vi, side, at } => {
                    let queue = self.vis.get_mut(&(vi, side == Side::Receive));
                    let next = queue.and_then(VecDeque::pop_front);
                    next.map(|(handler, context)| Call::Vi(handler, context, nic, vi, at))
                }
                News::CqDone { cq, done } => {
                    let next = self.cqs.get_mut(&cq).and_then(VecDeque::pop_front);
                    next.map(|(handler, context)| Call::Cq(handler, context, nic, cq, done.vi, done.side))
                }
                News::Failed(failure) => Some(Call::Error(self.error, nic, failure)),
            };
            // An event without a handler belongs to a queue that was destroyed.
            if call.is_some() {
                return call;
            }
        }
        None
    }
}

impl Call {
    fn kind(&self) -> Kind {
        match self {
            Self::Vi(_, _, _, vi, _) => Kind::Vi(*vi),
            Self::Cq(_, _, _, cq, ..) => Kind::Cq(*cq),
            Self::Error(..) => Kind::Error,
        }
    }

    /// Makes the call.
    pub fn make(self) {
        match self {
            // SAFETY: the program has registered this function for such a call.
            Self::Vi(handler, context, nic, vi, at) => unsafe {
                handler(context.0, nic.give(), vi.give(nic), descriptor_at(at));
            },
            // SAFETY: the program has registered this function for such a call.
            Self::Cq(handler, context, nic, _, vi, side) => unsafe {
                handler(context.0, nic.give(), vi.give(nic), i32::from(side == Side::Receive));
            },
            Self::Error(Some((handler, context)), nic, failure) => {
                let mut error = describe(nic, &failure);
                // SAFETY: the program has registered this function for such a call. The structure lives
                // for the call.
                unsafe { handler(context.0, &mut error) };
            }
            Self::Error(None, nic, failure) => log(nic, &failure),
        }
    }
}

/// Returns the pointer to a descriptor of the program.
pub fn descriptor_at(at: DescriptorAt) -> *mut Descriptor {
    ptr::with_exposed_provenance_mut(at.address as usize)
}

fn describe(nic: NicId, failure: &Failure) -> ErrorDescriptor {
    let Failure { error, resource, vi, cq, at } = *failure;
    ErrorDescriptor {
        nic: nic.give(),
        vi: vi.map_or(ptr::null_mut(), |vi| vi.give(nic)),
        cq: cq.map_or(ptr::null_mut(), |cq| cq.give(nic)),
        descriptor: at.map_or(ptr::null_mut(), descriptor_at),
        op_code: 0,
        resource: resource as u32,
        error: error as u32,
    }
}

/// Writes an error to stderr, because the program has set no error callback.
fn log(nic: NicId, failure: &Failure) {
    let error = match failure.error {
        AsyncError::PostDesc => "VIP_ERROR_POST_DESC: a descriptor that was posted can not be processed",
        AsyncError::ConnLost => "VIP_ERROR_CONN_LOST: the connection has ended",
        AsyncError::RecvqEmpty => "VIP_ERROR_RECVQ_EMPTY: a message has come and no receive was posted",
        AsyncError::ViOverrun => "VIP_ERROR_VI_OVERRUN: more has completed than a completion queue holds",
        AsyncError::RdmawProt => "VIP_ERROR_RDMAW_PROT: the peer wrote where it may not",
        AsyncError::RdmawData => "VIP_ERROR_RDMAW_DATA: what the peer wrote came damaged",
        AsyncError::RdmawAbort => "VIP_ERROR_RDMAW_ABORT: the peer was lost while it wrote",
        AsyncError::RdmarProt => "VIP_ERROR_RDMAR_PROT: the peer read where it may not",
        AsyncError::CompProt => "VIP_ERROR_COMP_PROT: a descriptor's memory is not registered any more",
        AsyncError::RdmaTransport => "VIP_ERROR_RDMA_TRANSPORT: the transport failed during an RDMA",
        AsyncError::Catastrophic => "VIP_ERROR_CATASTROPHIC: the provider has failed",
    };
    let about = match (failure.resource, failure.vi) {
        (Resource::Nic, _) | (_, None) => format!("NIC {:p}", nic.give()),
        (_, Some(vi)) => format!("VI {:p}", vi.give(nic)),
    };
    // An error of the write cannot be reported.
    let _ = writeln!(std::io::stderr(), "libvipl: {about}: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_stack::vi::Done;

    const NIC: NicId = NicId { slot: 0, generation: 1 };
    const VI: ViHandle = ViHandle(7);
    const CQ: CqHandle = CqHandle(8);

    unsafe extern "C" fn on_vi(context: Opaque, _: Opaque, _: Opaque, _: *mut Descriptor) {
        // SAFETY: the test passes a counter.
        unsafe { *context.cast::<u32>() += 1 };
    }

    unsafe extern "C" fn on_cq(context: Opaque, _: Opaque, _: Opaque, is_receive: i32) {
        // SAFETY: the test passes a counter.
        unsafe { *context.cast::<u32>() += 10 + is_receive as u32 };
    }

    fn counter(count: &mut u32) -> Context {
        Context(ptr::from_mut(count).cast())
    }

    fn done(side: Side) -> News {
        News::Done { vi: VI, side, at: DescriptorAt::default() }
    }

    #[test]
    fn handlers_are_called_in_their_order_each_once() {
        let mut callbacks = Callbacks::default();
        let mut counts = [0; 3];
        let [first, second, other] = &mut counts;
        callbacks.await_vi(VI, Side::Send, on_vi, counter(first));
        callbacks.await_vi(VI, Side::Send, on_vi, counter(second));
        callbacks.await_vi(VI, Side::Receive, on_vi, counter(other));
        (0..2).for_each(|_| callbacks.note(done(Side::Send)));
        assert!(callbacks.are_due());
        callbacks.next(NIC).unwrap().make();
        assert_eq!([*first, *second, *other], [1, 0, 0]);
        callbacks.next(NIC).unwrap().make();
        assert!(callbacks.next(NIC).is_none() && !callbacks.are_due());
        assert_eq!(counts, [1, 1, 0]);
    }

    #[test]
    fn what_is_gone_is_not_called_for() {
        let mut callbacks = Callbacks::default();
        let mut count = 0;
        callbacks.await_vi(VI, Side::Receive, on_vi, counter(&mut count));
        callbacks.await_cq(CQ, on_cq, counter(&mut count));
        callbacks.note(done(Side::Receive));
        callbacks.note(News::CqDone { cq: CQ, done: Done { vi: VI, side: Side::Receive } });
        callbacks.forget_vi(VI);
        callbacks.next(NIC).unwrap().make();
        assert_eq!(count, 11);
        assert!(callbacks.is_running(Kind::Cq(CQ)) && !callbacks.is_running(Kind::Vi(VI)));
        callbacks.await_cq(CQ, on_cq, counter(&mut count));
        callbacks.note(News::CqDone { cq: CQ, done: Done { vi: VI, side: Side::Send } });
        callbacks.forget_cq(CQ);
        assert!(callbacks.next(NIC).is_none() && !callbacks.is_running(Kind::Cq(CQ)));
    }
}
