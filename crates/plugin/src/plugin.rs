//! Loads a layer, and checks it before any of its functions is called.

use crate::abi::{self, Layer};
use crate::{PluginError, one_line};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::CStr;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::path::Path;

/// The symbol that a layer exports.
const SYMBOL: &[u8] = b"netdyno_layer\0";

/// Size in bytes of the function table in the first header of this version.
const FIRST_SIZE: usize = offset_of!(Layer, register_memory);

/// Functions that every layer has.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) open: abi::Open,
    pub(crate) describe: abi::Describe,
    pub(crate) close: abi::Close,
}

/// Functions of a layer with native requests.
#[derive(Clone, Copy)]
pub(crate) struct Requests {
    pub(crate) request: abi::Request,
    pub(crate) take_reply: abi::TakeReply,
    pub(crate) answer: abi::Answer,
}

/// Functions of a layer with messages.
#[derive(Clone, Copy)]
pub(crate) struct Messages {
    pub(crate) post_receive: abi::PostReceive,
    pub(crate) post_send: abi::PostSend,
    pub(crate) test_receive: abi::TestReceive,
    pub(crate) test_send: abi::OfSlot,
    pub(crate) cancel_receive: abi::OfSlot,
}

/// Functions of a layer that registers memory.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) register: abi::Register,
    pub(crate) deregister: abi::Deregister,
}

/// Functions of a layer with put and get.
#[derive(Clone, Copy)]
pub(crate) struct OneSided {
    pub(crate) key: abi::WriteKey,
    pub(crate) put: abi::OfTransfer,
    pub(crate) get: abi::OfTransfer,
    pub(crate) flush: abi::OfRank,
}

/// Functions of a layer with epochs, and the kinds of epochs that it has.
#[derive(Clone, Copy)]
pub(crate) struct Epochs {
    fences: bool,
    posts: bool,
    pub(crate) open: abi::OfRank,
    pub(crate) close: abi::OfRank,
    pub(crate) expose: abi::OfRank,
}

/// The way in which the processes of a layer find each other.
#[derive(Clone, Copy)]
pub(crate) enum Finding {
    /// The layer's own launcher starts them.
    Launcher,
    /// netdyno passes the addresses of all processes to each.
    Addresses { address: abi::WriteAddress, connect: abi::Connect },
}

/// A loaded layer that has passed all checks. It is never unloaded, because communication libraries leave
/// threads and handlers behind that still need their code.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) calls: Calls,
    pub(crate) finding: Finding,
    pub(crate) gather: Option<abi::Gather>,
    pub(crate) block: Option<abi::Block>,
    pub(crate) requests: Option<Requests>,
    /// `None` only if `requests` is present.
    pub(crate) messages: Option<Messages>,
    pub(crate) registers: Option<Registers>,
    /// Present only if `registers` and `messages` are.
    pub(crate) one_sided: Option<OneSided>,
    /// Present only if `one_sided` is.
    pub(crate) fetch_add: Option<abi::FetchAdd>,
    /// Present only if `one_sided` is.
    pub(crate) epochs: Option<Epochs>,
    /// Present only if `one_sided` is.
    pub(crate) allocate: Option<abi::Allocate>,
}

impl Plugin {
    /// Loads the layer in `file`.
    pub fn load(file: &Path) -> Result<Self, PluginError> {
        let error = |text: String| PluginError(format!("the plugin {} {text}", file.display()));
        let cannot = |cause: libloading::Error| error(format!("cannot be loaded: {}", says(&cause)));
        // The loader searches other directories for a name without a slash.
        let path = std::path::absolute(file).map_err(PluginError::new)?;
        // SAFETY: loading runs the library's own initialisers, and the library is trusted like a linked one.
        // Its symbols are global, because libraries such as Open MPI load plugins of their own that resolve
        // them.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }.map_err(cannot)?;
        // SAFETY: the symbol is an object. This call takes its address and does not read it.
        let layer = unsafe { library.get::<*const Layer>(SYMBOL) }
            .map(|symbol| *symbol)
            .map_err(|_| error("is no layer: it has no symbol netdyno_layer".into()))?;
        std::mem::forget(library);
        // SAFETY: every version of the structure begins with two 32-bit numbers, and the library is never
        // unloaded.
        let [version, size] = unsafe { layer.cast::<[u32; 2]>().read_unaligned() };
        if version != abi::VERSION {
            return Err(error(format!(
                "is of version {version} of the interface, this netdyno of version {}: build it again",
                abi::VERSION
            )));
        }
        if (size as usize) < FIRST_SIZE {
            return Err(error(format!(
                "is too small for version {version} of the interface: its table has {size} bytes, not {FIRST_SIZE}"
            )));
        }
        // SAFETY: the table has this version and at least the copied length. Missing members stay zero, and
        // null function pointers are `None`.
        let table = unsafe {
            let mut table = MaybeUninit::<Layer>::zeroed();
            let whole = size_of::<usize>();
            let bytes = (size as usize).min(size_of::<Layer>()) / whole * whole;
            table.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(layer.cast(), bytes);
            table.assume_init()
        };
        Self::checked(&table).map_err(error)
    }

    fn checked(layer: &Layer) -> Result<Self, String> {
        let can = |capability: u64| layer.capabilities & capability != 0;
        if layer.name.is_null() {
            return Err("has no name".into());
        }
        // SAFETY: the header requires a string, which lives as long as the library.
        let name = one_line(&unsafe { CStr::from_ptr(layer.name) }.to_string_lossy());
        let calls = Calls {
            open: needed(layer.open, "open")?,
            describe: needed(layer.describe, "describe")?,
            close: needed(layer.close, "close")?,
        };
        let finding = if can(abi::HAS_LAUNCHER) {
            Finding::Launcher
        } else {
            let (address, connect) = (needed(layer.address, "address")?, needed(layer.connect, "connect")?);
            Finding::Addresses { address, connect }
        };
        let gather = can(abi::GATHERS).then(|| needed(layer.gather, "gather")).transpose()?;
        let block = can(abi::BLOCKS).then(|| needed(layer.block, "block")).transpose()?;
        let requests = can(abi::REQUESTS).then(|| requests_of(layer)).transpose()?;
        // A layer with native requests may lack all functions for messages.
        let has_messages = requests.is_none() || layer.post_receive.is_some();
        let messages = has_messages.then(|| messages_of(layer)).transpose()?;
        let registers = can(abi::REGISTERS).then(|| registers_of(layer)).transpose()?;
        let one_sided = can(abi::ONE_SIDED).then(|| one_sided_of(layer)).transpose()?;
        // Put and get need registered memory, and they use the slots of sends.
        if one_sided.is_some() && (registers.is_none() || messages.is_none()) {
            return Err("has put and get without messages, or without registering memory".into());
        }
        let fetch_add = can(abi::FETCH_ADD).then(|| needed(layer.fetch_add, "fetch_add")).transpose()?;
        if fetch_add.is_some() && one_sided.is_none() {
            return Err("has fetch_add without put and get".into());
        }
        let epochs = can(abi::FENCE | abi::POST).then(|| epochs_of(layer)).transpose()?;
        if epochs.is_some() && one_sided.is_none() {
            return Err("has epochs without put and get".into());
        }
        let allocate =
            can(abi::ALLOCATES).then(|| needed(layer.allocate_memory, "allocate_memory")).transpose()?;
        if allocate.is_some() && one_sided.is_none() {
            return Err("has allocate_memory without put and get".into());
        }
        Ok(Self {
            name,
            calls,
            finding,
            gather,
            block,
            requests,
            messages,
            registers,
            one_sided,
            fetch_add,
            epochs,
            allocate,
        })
    }

    /// Returns the name that the layer gives itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reports whether the layer's own launcher starts its processes and assigns their ranks.
    pub fn has_launcher(&self) -> bool {
        matches!(self.finding, Finding::Launcher)
    }

    /// Reports whether the layer has native requests and replies.
    pub fn requests(&self) -> bool {
        self.requests.is_some()
    }

    /// Reports whether the layer has messages.
    pub fn messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Reports whether the layer registers memory.
    pub fn registers(&self) -> bool {
        self.registers.is_some()
    }

    /// Reports whether the layer registers memory and has put and get.
    pub fn one_sided(&self) -> bool {
        self.one_sided.is_some()
    }

    /// Reports whether the layer has epochs between fences.
    pub fn fences(&self) -> bool {
        self.epochs.is_some_and(|epochs| epochs.fences)
    }

    /// Reports whether the layer has epochs on memory that the other process posts.
    pub fn posts(&self) -> bool {
        self.epochs.is_some_and(|epochs| epochs.posts)
    }

    /// Reports whether the layer allocates memory for put and get itself.
    pub fn allocates(&self) -> bool {
        self.allocate.is_some()
    }

    /// Reports whether a process can block until progress may be possible.
    pub fn blocks(&self) -> bool {
        self.block.is_some()
    }
}

fn needed<T>(function: Option<T>, name: &str) -> Result<T, String> {
    function.ok_or_else(|| format!("lacks the function {name}"))
}

fn requests_of(layer: &Layer) -> Result<Requests, String> {
    Ok(Requests {
        request: needed(layer.request, "request")?,
        take_reply: needed(layer.take_reply, "take_reply")?,
        answer: needed(layer.answer, "answer")?,
    })
}

fn messages_of(layer: &Layer) -> Result<Messages, String> {
    Ok(Messages {
        post_receive: needed(layer.post_receive, "post_receive")?,
        post_send: needed(layer.post_send, "post_send")?,
        test_receive: needed(layer.test_receive, "test_receive")?,
        test_send: needed(layer.test_send, "test_send")?,
        cancel_receive: needed(layer.cancel_receive, "cancel_receive")?,
    })
}

fn registers_of(layer: &Layer) -> Result<Registers, String> {
    Ok(Registers {
        register: needed(layer.register_memory, "register_memory")?,
        deregister: needed(layer.deregister_memory, "deregister_memory")?,
    })
}

fn one_sided_of(layer: &Layer) -> Result<OneSided, String> {
    Ok(OneSided {
        key: needed(layer.key, "key")?,
        put: needed(layer.put, "put")?,
        get: needed(layer.get, "get")?,
        flush: needed(layer.flush, "flush")?,
    })
}

fn epochs_of(layer: &Layer) -> Result<Epochs, String> {
    Ok(Epochs {
        fences: layer.capabilities & abi::FENCE != 0,
        posts: layer.capabilities & abi::POST != 0,
        open: needed(layer.open_epoch, "open_epoch")?,
        close: needed(layer.close_epoch, "close_epoch")?,
        expose: needed(layer.expose, "expose")?,
    })
}

/// Returns the system's own error text if there is one.
fn says(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    one_line(&cause.unwrap_or_else(|| error.to_string()))
}
