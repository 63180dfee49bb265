//! A simulated interface of known parameters, in virtual time. The patterns see only
//! the face of a layer, never the truth.

use netdyno_measure::layer::{
    LayerError, Messenger, Purpose, Registrar, Requester, SizedRequester, Time, Work,
};
use netdyno_measure::order::Order;
use netdyno_measure::registration::data::MemorySystem;
use netdyno_protocol::sim::Memory;
use netdyno_protocol::sim::memory::PAGE;
use netdyno_protocol::sim::{Interface, Message, Messages, Stuck, Truth};

const PS_PER_NS: f64 = 1e3;
/// Messages each way that may be under way, where the truth's window is not smaller.
const DEPTH: usize = 64;
/// Virtual time ends here: what a message adds to it is less than what is left of its 64 bits.
const LATEST_PS: u64 = 1 << 62;
/// The largest message.
pub const LARGEST_MESSAGE: usize = 1 << 30;

fn stuck(_: Stuck) -> LayerError {
    LayerError::new("the simulated interface has nothing under way")
}

/// The requester's side of a simulated interface. A tick is a picosecond.
pub struct SimRequester {
    interface: Interface,
    max_window: usize,
}

impl SimRequester {
    /// An idle interface; `seed` seeds its noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self { interface: Interface::new(truth, seed), max_window: truth.window }
    }
}

impl Time for SimRequester {
    fn now(&mut self) -> u64 {
        self.interface.now_ps()
    }

    fn tick_ns(&self) -> f64 {
        1.0 / PS_PER_NS
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * PS_PER_NS).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        self.interface.compute(work.0);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Requester for SimRequester {
    fn issue(&mut self) -> Result<bool, LayerError> {
        if self.interface.now_ps() > LATEST_PS {
            return Err(LayerError::new(
                "virtual time is over, after 53 days: choose smaller messages or shorter times in --truth",
            ));
        }
        Ok(self.interface.issue())
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        Ok(self.interface.poll())
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.interface.wait().map_err(stuck)
    }

    fn in_flight(&self) -> usize {
        self.interface.in_flight()
    }

    fn max_window(&self) -> usize {
        self.max_window
    }

    fn set_window(&mut self, window: usize) {
        self.interface.set_window(window);
    }
}

impl SizedRequester for SimRequester {
    fn largest(&self) -> usize {
        usize::MAX
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        self.interface.set_sizes(request_bytes, reply_bytes);
        Ok(())
    }
}

/// The worker's side of two simulated processes that exchange messages. A tick is a picosecond.
pub struct SimMessenger {
    messages: Messages,
    depth: usize,
}

impl SimMessenger {
    /// Two idle processes; `seed` seeds their noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        let depth = truth.window.min(DEPTH);
        Self { messages: Messages::new(truth, depth, seed), depth }
    }
}

impl Time for SimMessenger {
    fn now(&mut self) -> u64 {
        self.messages.now_ps()
    }

    fn tick_ns(&self) -> f64 {
        1.0 / PS_PER_NS
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * PS_PER_NS).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        self.messages.compute(work.0);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Messenger for SimMessenger {
    fn depth(&self) -> usize {
        self.depth
    }

    fn largest(&self) -> usize {
        LARGEST_MESSAGE
    }

    fn post_receive(&mut self, slot: usize, _: usize) -> Result<(), LayerError> {
        self.messages.post_receive(slot);
        Ok(())
    }

    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        let (answers, answer_bytes) = (order.answers.into(), order.bytes as usize);
        self.messages.post_send(slot, Message { bytes, answers, answer_bytes });
        Ok(())
    }

    fn test_receive(&mut self, slot: usize) -> Result<bool, LayerError> {
        Ok(self.messages.test_receive(slot))
    }

    fn test_send(&mut self, slot: usize) -> Result<bool, LayerError> {
        Ok(self.messages.test_send(slot))
    }

    fn wait_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.messages.wait_receive(slot).map_err(stuck)
    }

    fn wait_send(&mut self, slot: usize) -> Result<(), LayerError> {
        self.messages.wait_send(slot).map_err(stuck)
    }

    fn other_threads_ns(&mut self) -> Option<f64> {
        Some(self.messages.helper_ps() as f64 / PS_PER_NS)
    }
}

/// What costs the same whatever the size of a region, where the truth says what it costs.
const FIXED: [&str; 1] = ["create"];

/// A process whose memory is simulated. A tick is a picosecond.
pub struct SimRegistrar {
    memory: Memory,
    lock_limit_bytes: Option<u64>,
    fixed: &'static [&'static str],
}

impl SimRegistrar {
    /// A process without memory; `seed` seeds its noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self {
            memory: Memory::new(&truth, seed),
            lock_limit_bytes: truth.memory.lock_limit_bytes.map(|bytes| bytes as u64),
            fixed: if truth.memory.create_ps.is_some() { &FIXED } else { &[] },
        }
    }
}

impl Time for SimRegistrar {
    fn now(&mut self) -> u64 {
        self.memory.now_ps()
    }

    fn tick_ns(&self) -> f64 {
        1.0 / PS_PER_NS
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * PS_PER_NS).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        self.memory.compute(work.0);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Registrar for SimRegistrar {
    fn system(&self) -> MemorySystem {
        MemorySystem { page_bytes: PAGE, lock_limit_bytes: self.lock_limit_bytes, huge_pages: None }
    }

    fn renew(&mut self, _: Purpose, bytes: usize) -> Result<(), LayerError> {
        self.memory.renew(bytes);
        Ok(())
    }

    fn touch(&mut self) {
        self.memory.touch();
    }

    /// It has no caches.
    fn warm_up(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    fn register(&mut self) -> Result<(), LayerError> {
        self.memory.register();
        Ok(())
    }

    fn deregister(&mut self) -> Result<(), LayerError> {
        let was_registered = self.memory.deregister();
        was_registered.then_some(()).ok_or_else(|| LayerError::new("the memory is not registered"))
    }

    fn lock(&mut self) -> Result<bool, LayerError> {
        Ok(self.memory.lock())
    }

    fn unlock(&mut self) -> Result<(), LayerError> {
        self.memory.unlock();
        Ok(())
    }

    fn fixed(&self) -> &[&'static str] {
        self.fixed
    }

    fn perform(&mut self, _: usize) -> Result<u64, LayerError> {
        let before = self.memory.now_ps();
        self.memory.create();
        Ok(self.memory.now_ps() - before)
    }
}
