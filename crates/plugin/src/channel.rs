//! An open layer, which exchanges messages between processes from slot to slot.
//!
//! The channel owns all buffers. While an operation is posted in a slot, its buffer can be neither read nor
//! written. No buffer is freed before the layer has released it.

mod epochs;
mod ground;
mod regions;

pub use regions::{RegionId, Transfer};

use crate::abi::{self, RawChannel};
use crate::absent;
use crate::plugin::{Finding, Messages, Plugin, Requests};
use crate::row::Row;
use crate::{PluginError, one_line};
use ground::{GROUNDS, Ground};
use regions::Regions;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{ManuallyDrop, size_of};
use std::ptr::{NonNull, null};
use std::time::Duration;

/// Maximum length in bytes of the address of a process.
const ADDRESS_BYTES: usize = 1024;

/// The rank of a process, and the number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rank, from 0.
    pub rank: usize,
    /// Number of processes.
    pub ranks: usize,
}

/// The use of a channel in addition to messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// No other use.
    Messages,
    /// Memory is registered.
    Memory,
    /// Memory is registered and accessed by put and get, and by fetch_add if the layer has it.
    OneSided,
    /// The same in epochs between two fences of all processes.
    Fence,
    /// The same in epochs on memory that the other process posts.
    Post,
}

impl Uses {
    /// Reports whether memory is accessed by put and get.
    pub fn is_one_sided(self) -> bool {
        self.has_epochs() || self == Self::OneSided
    }

    /// Reports whether memory is accessed in epochs.
    pub fn has_epochs(self) -> bool {
        matches!(self, Self::Fence | Self::Post)
    }

    fn bits(self) -> u64 {
        match self {
            Self::Messages => 0,
            Self::Memory => abi::REGISTERS,
            Self::OneSided => abi::REGISTERS | abi::ONE_SIDED | abi::FETCH_ADD,
            Self::Fence => Self::OneSided.bits() | abi::FENCE,
            Self::Post => Self::OneSided.bits() | abi::POST,
        }
    }
}

/// The options with which a layer is opened.
#[derive(Clone, Debug)]
pub struct Opening<'a> {
    /// The place of this process. A layer with its own launcher ignores it.
    pub place: Place,
    /// Maximum number of receives, and of sends, posted at once.
    pub slots: usize,
    /// Size of the largest message in bytes.
    pub largest: usize,
    /// Bytes of memory of all receives, and of all sends.
    pub memory: (usize, usize),
    /// The use of the channel in addition to messages.
    pub uses: Uses,
    /// Whether the process will sleep ([`Channel::block`]).
    pub blocks: bool,
    /// Whether the layer itself allocates the memory of put and get ([`Channel::make_region`]).
    pub allocates: bool,
    /// Settings of the layer, each as `name=value`.
    pub settings: &'a [String],
}

/// The result of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Length of the message in bytes.
    pub bytes: usize,
    /// Rank of the sender.
    pub rank: usize,
}

/// The buffer into which the layer writes error texts. The layer may write to it as long as the channel is
/// open.
struct Text(NonNull<[u8; abi::TEXT_BYTES]>);

impl Text {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new([0; abi::TEXT_BYTES]))))
    }

    fn room(&self) -> *mut c_char {
        self.0.as_ptr().cast()
    }

    /// Returns the text that the layer has written since the last call, and clears it.
    fn take(&mut self) -> String {
        // SAFETY: allocated in `new` and initialised. Between two calls of the layer no other code writes to
        // it.
        let bytes = unsafe { self.0.as_mut() };
        let text = text_in(bytes);
        bytes[0] = 0;
        text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: allocated as a box and freed only here. By contract the layer no longer uses it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Returns the text that a layer wrote into `bytes`, as one line.
fn text_in(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map(CStr::to_string_lossy);
    one_line(&text.unwrap_or_else(|_| String::from_utf8_lossy(bytes)))
}

/// An open layer.
pub struct Channel {
    raw: *mut RawChannel,
    plugin: Plugin,
    /// The functions of the plugin, or the failing stubs of `absent`.
    messages: Messages,
    requests: Requests,
    place: Place,
    largest: usize,
    uses: Uses,
    /// Present only if the channel may use it.
    fetch_add: Option<abi::FetchAdd>,
    /// Present only if the channel uses it.
    allocate: Option<abi::Allocate>,
    /// The memory that the layer may still use.
    held: ManuallyDrop<Held>,
}

struct Held {
    receives: Row,
    sends: Row,
    regions: Regions,
    grounds: [Option<Ground>; GROUNDS],
    error: Text,
}

impl Channel {
    /// Opens a layer.
    pub fn open(plugin: Plugin, opening: &Opening<'_>) -> Result<Self, PluginError> {
        let held = Held {
            receives: Row::new(opening.slots, opening.memory.0)?,
            sends: Row::new(opening.slots, opening.memory.1)?,
            regions: Regions::default(),
            grounds: Default::default(),
            error: Text::new(),
        };
        let settings: Vec<CString> = opening
            .settings
            .iter()
            .map(|setting| CString::new(setting.as_str()).map_err(PluginError::new))
            .collect::<Result<_, _>>()?;
        let settings: Vec<*const c_char> =
            settings.iter().map(|setting| setting.as_ptr()).chain([null()]).collect();
        let number = |number: usize| i32::try_from(number).map_err(PluginError::new);
        let mut options = abi::Options {
            size: size_of::<abi::Options>() as u32,
            slots: u32::try_from(opening.slots).map_err(PluginError::new)?,
            largest: opening.largest as u64,
            rank: number(opening.place.rank)?,
            ranks: number(opening.place.ranks)?,
            settings: settings.as_ptr(),
            error: held.error.room(),
            uses: opening.uses.bits()
                | if opening.blocks { abi::BLOCKS } else { 0 }
                | if opening.allocates { abi::ALLOCATES } else { 0 },
        };
        // SAFETY: the options are as the header requires. The settings outlive the call, and the error text
        // lives until the channel is closed.
        let raw = unsafe { (plugin.calls.open)(&mut options) };
        let mut channel = Self {
            raw,
            place: opening.place,
            largest: opening.largest.min(usize::try_from(options.largest).unwrap_or(usize::MAX)),
            uses: opening.uses,
            fetch_add: plugin.fetch_add.filter(|_| options.uses & abi::FETCH_ADD != 0),
            allocate: plugin.allocate.filter(|_| opening.allocates),
            held: ManuallyDrop::new(held),
            messages: plugin.messages.unwrap_or(absent::MESSAGES),
            requests: plugin.requests.unwrap_or(absent::REQUESTS),
            plugin,
        };
        if raw.is_null() {
            return Err(channel.failed());
        }
        if channel.plugin.has_launcher() {
            let place = (usize::try_from(options.rank), usize::try_from(options.ranks));
            let (Ok(rank), Ok(ranks)) = place else { return Err(channel.senseless("open")) };
            channel.place = Place { rank, ranks };
        }
        if channel.place.rank >= channel.place.ranks {
            return Err(channel.senseless("open"));
        }
        Ok(channel)
    }

    /// Returns the error text that the layer wrote last, as an error.
    #[cold]
    fn failed(&mut self) -> PluginError {
        let text = self.held.error.take();
        let name = &self.plugin.name;
        PluginError(if text.is_empty() { format!("{name} failed and did not say why") } else { text })
    }

    /// Returns the error of a return value that the header does not allow.
    #[cold]
    fn senseless(&self, call: &str) -> PluginError {
        PluginError(format!("the plugin {} answered {call} with what makes no sense", self.plugin.name))
    }

    /// Converts the result of a call: 0 to `false`, 1 to `true`, and any other to an error.
    #[inline(always)]
    fn truth(&mut self, returned: c_int, call: &str) -> Result<bool, PluginError> {
        match returned {
            0 => Ok(false),
            1 => Ok(true),
            ..0 => Err(self.failed()),
            _ => Err(self.senseless(call)),
        }
    }

    /// Returns the rank of this process and the number of processes.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the largest message in bytes. It is less than requested if the layer supports less.
    pub fn largest(&self) -> usize {
        self.largest
    }

    /// Returns the maximum number of receives, and of sends, posted at once.
    pub fn slots(&self) -> usize {
        self.held.sends.slots()
    }

    /// Returns the plugin of this layer.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Returns the name, version and configuration of the layer's library.
    pub fn description(&mut self) -> String {
        let mut text = [0u8; abi::TEXT_BYTES];
        // SAFETY: the channel is open, and the buffer has the given length.
        unsafe { (self.plugin.calls.describe)(self.raw, text.as_mut_ptr().cast(), text.len()) };
        text_in(&text)
    }

    /// Returns the address of this process. It is empty if the layer has its own launcher.
    pub fn address(&mut self) -> Result<Vec<u8>, PluginError> {
        let Finding::Addresses { address, .. } = self.plugin.finding else { return Ok(Vec::new()) };
        let mut bytes = vec![0u8; ADDRESS_BYTES];
        // SAFETY: the channel is open, and the buffer has the given length.
        let length = unsafe { address(self.raw, bytes.as_mut_ptr().cast(), bytes.len()) };
        if length < 0 {
            return Err(self.failed());
        }
        if length as usize > bytes.len() {
            return Err(self.senseless("address"));
        }
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    /// Connects to all other processes. `addresses` is indexed by rank. Does nothing if the layer has its own
    /// launcher.
    pub fn connect(&mut self, addresses: &[Vec<u8>]) -> Result<(), PluginError> {
        let Finding::Addresses { connect, .. } = self.plugin.finding else { return Ok(()) };
        if addresses.len() != self.place.ranks {
            return Err(PluginError::new("there are not as many addresses as processes"));
        }
        let addresses: Vec<abi::Address> = addresses
            .iter()
            .map(|bytes| abi::Address { bytes: bytes.as_ptr().cast(), length: bytes.len() })
            .collect();
        // SAFETY: the channel is open, and there are as many addresses as given.
        let returned = unsafe { connect(self.raw, addresses.as_ptr(), addresses.len() as u32) };
        self.truth(returned, "connect").map(drop)
    }

    /// Gathers `mine` of every process, indexed by rank, like `MPI_Allgather`. All processes must pass the
    /// same length. Returns `None` if the layer does not support it.
    pub fn gather(&mut self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>, PluginError> {
        let Some(gather) = self.plugin.gather else { return Ok(None) };
        let mut all = vec![0u8; mine.len() * self.place.ranks];
        // SAFETY: the channel is open. `mine` holds one part, and `all` has space for one part of every
        // process.
        let returned = unsafe { gather(self.raw, mine.as_ptr().cast(), all.as_mut_ptr().cast(), mine.len()) };
        self.truth(returned, "gather")?;
        Ok(Some((0..self.place.ranks).map(|rank| all[rank * mine.len()..][..mine.len()].to_vec()).collect()))
    }

    /// Sets the distance in bytes between the buffers of neighbouring slots, for receives and for sends. With
    /// 0 all slots share one buffer. No operation may be posted.
    pub fn set_strides(&mut self, receive: usize, send: usize) -> Result<(), PluginError> {
        self.held.receives.set_stride(receive)?;
        self.held.sends.set_stride(send)
    }

    /// Posts a receive of at most `bytes` from the given rank, or from any rank if `from` is `None`.
    #[inline(always)]
    pub fn post_receive(
        &mut self,
        slot: usize,
        from: Option<usize>,
        bytes: usize,
    ) -> Result<(), PluginError> {
        let rank = from.map_or(Ok(abi::ANY_RANK), |rank| self.rank(rank))?;
        let buffer = self.held.receives.post(slot, bytes)?.as_ptr().cast::<c_void>();
        // SAFETY: the channel is open. The buffer stays valid and untouched until the receive completes, it
        // is cancelled, or the channel is closed.
        let returned = unsafe { (self.messages.post_receive)(self.raw, slot as u32, rank, buffer, bytes) };
        self.truth(returned, "post_receive").map(drop)
    }

    /// Posts a send of the first `bytes` of the slot's buffer.
    #[inline(always)]
    pub fn post_send(&mut self, slot: usize, to: usize, bytes: usize) -> Result<(), PluginError> {
        let rank = self.rank(to)?;
        let buffer = self.held.sends.post(slot, bytes)?.as_ptr().cast_const().cast::<c_void>();
        // SAFETY: the channel is open. The buffer stays valid and unchanged until the send completes or the
        // channel is closed.
        let returned = unsafe { (self.messages.post_send)(self.raw, slot as u32, rank, buffer, bytes) };
        self.truth(returned, "post_send").map(drop)
    }

    #[inline(always)]
    fn rank(&self, rank: usize) -> Result<i32, PluginError> {
        if rank < self.place.ranks { Ok(rank as i32) } else { Err(self.no_process(rank)) }
    }

    #[cold]
    fn no_process(&self, rank: usize) -> PluginError {
        PluginError(format!("there is no process {rank} among {}", self.place.ranks))
    }

    /// Reports whether a receive is posted in the slot.
    #[inline(always)]
    pub fn is_receiving(&self, slot: usize) -> bool {
        self.held.receives.is_posted(slot)
    }

    /// Returns the result of a receive if it is complete, and frees its slot. Returns `None` if it is not.
    #[inline(always)]
    pub fn test_receive(&mut self, slot: usize) -> Result<Option<Arrival>, PluginError> {
        if !self.held.receives.is_posted(slot) {
            return Err(not_posted(slot));
        }
        let mut arrival = abi::Arrival::default();
        // SAFETY: the channel is open, and a receive is posted in the slot.
        let returned = unsafe { (self.messages.test_receive)(self.raw, slot as u32, &mut arrival) };
        if !self.truth(returned, "test_receive")? {
            return Ok(None);
        }
        self.held.receives.complete(slot);
        let abi::Arrival { bytes, rank, .. } = arrival;
        if rank < 0 || rank as usize >= self.place.ranks {
            return Err(self.senseless("test_receive"));
        }
        Ok(Some(Arrival { bytes, rank: rank as usize }))
    }

    /// Reports whether the send is complete, and frees its slot if so. A free slot counts as complete.
    #[inline(always)]
    pub fn test_send(&mut self, slot: usize) -> Result<bool, PluginError> {
        if !self.held.sends.is_posted(slot) {
            return Ok(true);
        }
        // SAFETY: the channel is open, and a send is posted in the slot.
        let returned = unsafe { (self.messages.test_send)(self.raw, slot as u32) };
        let is_complete = self.truth(returned, "test_send")?;
        if is_complete {
            self.held.sends.complete(slot);
        }
        Ok(is_complete)
    }

    /// Cancels the receive in the slot, if one is posted. Returns `true` if a message had already arrived.
    pub fn cancel_receive(&mut self, slot: usize) -> Result<bool, PluginError> {
        if !self.held.receives.is_posted(slot) {
            return Ok(false);
        }
        // SAFETY: the channel is open, and a receive is posted in the slot.
        let returned = unsafe { (self.messages.cancel_receive)(self.raw, slot as u32) };
        let had_come = self.truth(returned, "cancel_receive")?;
        self.held.receives.complete(slot);
        Ok(had_come)
    }

    /// Returns the first `bytes` of the buffer of a receive slot.
    pub fn received(&self, slot: usize, bytes: usize) -> Result<&[u8], PluginError> {
        self.held.receives.bytes(slot, bytes)
    }

    /// Returns the first `bytes` of the buffer of a send slot, for writing. If all slots share one buffer, no
    /// send may be posted.
    pub fn to_send(&mut self, slot: usize, bytes: usize) -> Result<&mut [u8], PluginError> {
        self.held.sends.bytes_mut(slot, bytes)
    }

    /// Returns the number of posted sends.
    pub fn sends(&self) -> usize {
        self.held.sends.posted()
    }

    /// Issues a request of `bytes` to `to`, for a reply of `reply_bytes`. At most as many requests as slots
    /// may be outstanding.
    #[inline(always)]
    pub fn request(&mut self, to: usize, bytes: usize, reply_bytes: usize) -> Result<(), PluginError> {
        let rank = self.rank(to)?;
        // SAFETY: the channel is open.
        let returned = unsafe { (self.requests.request)(self.raw, rank, bytes, reply_bytes) };
        self.truth(returned, "request").map(drop)
    }

    /// Handles one reply if it has arrived, and returns the rank of its sender.
    #[inline(always)]
    pub fn take_reply(&mut self) -> Result<Option<usize>, PluginError> {
        let mut rank = abi::ANY_RANK;
        // SAFETY: the channel is open, and `rank` is a local variable.
        let returned = unsafe { (self.requests.take_reply)(self.raw, &mut rank) };
        if !self.truth(returned, "take_reply")? {
            return Ok(None);
        }
        let rank = usize::try_from(rank).ok().filter(|rank| *rank < self.place.ranks);
        rank.map(Some).ok_or_else(|| self.senseless("take_reply"))
    }

    /// Replies to one request if it has arrived. Returns `false` if none has.
    #[inline(always)]
    pub fn answer(&mut self) -> Result<bool, PluginError> {
        // SAFETY: the channel is open.
        let returned = unsafe { (self.requests.answer)(self.raw) };
        self.truth(returned, "answer")
    }

    /// Blocks until progress may be possible, at most for `timeout`. Returns at once if the layer does not
    /// support it.
    pub fn block(&mut self, timeout: Duration) -> Result<(), PluginError> {
        let Some(block) = self.plugin.block else { return Ok(()) };
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the channel is open.
        let returned = unsafe { block(self.raw, timeout_ns) };
        self.truth(returned, "block").map(drop)
    }
}

#[cold]
fn not_posted(slot: usize) -> PluginError {
    PluginError(format!("nothing is posted in slot {slot}"))
}

impl Channel {
    /// Frees the slots of operations that are complete and were not tested since. An error ends with the channel.
    fn free_complete_sends(&mut self) {
        for slot in 0..self.slots() {
            let _ = self.test_send(slot);
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            self.free_complete_sends();
            self.deregister_all();
        }
        // SAFETY: the channel is open, and it is closed only here.
        let has_let_go = self.raw.is_null() || unsafe { (self.plugin.calls.close)(self.raw) } == 0;
        if has_let_go {
            // SAFETY: `held` is not used again, and the layer has released all of it.
            unsafe { ManuallyDrop::drop(&mut self.held) };
        }
    }
}
