//! Loading a layer, and checking it before anything of it is called.

use crate::abi::{self, Layer};
use crate::{PluginError, one_line};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::CStr;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::path::Path;

/// The symbol that a layer exports.
const SYMBOL: &[u8] = b"netdyno_layer\0";

/// Bytes of the table in the first header of this version.
const FIRST_SIZE: usize = offset_of!(Layer, register_memory);

/// What every layer has.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) open: abi::Open,
    pub(crate) describe: abi::Describe,
    pub(crate) close: abi::Close,
}

/// What a layer with requests of its own has.
#[derive(Clone, Copy)]
pub(crate) struct Requests {
    pub(crate) request: abi::Request,
    pub(crate) take_reply: abi::TakeReply,
    pub(crate) answer: abi::Answer,
}

/// What a layer with messages has.
#[derive(Clone, Copy)]
pub(crate) struct Messages {
    pub(crate) post_receive: abi::PostReceive,
    pub(crate) post_send: abi::PostSend,
    pub(crate) test_receive: abi::TestReceive,
    pub(crate) test_send: abi::OfSlot,
    pub(crate) cancel_receive: abi::OfSlot,
}

/// What a layer has that knows memory.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) register: abi::Register,
    pub(crate) deregister: abi::Deregister,
}

/// What a layer has that reaches into the memory of others.
#[derive(Clone, Copy)]
pub(crate) struct OneSided {
    pub(crate) key: abi::WriteKey,
    pub(crate) put: abi::OfTransfer,
    pub(crate) get: abi::OfTransfer,
    pub(crate) flush: abi::Flush,
}

/// How the processes of a layer find each other.
#[derive(Clone, Copy)]
pub(crate) enum Finding {
    /// They were started by the layer's own launcher.
    Launcher,
    /// They are told each other's addresses.
    Addresses { address: abi::WriteAddress, connect: abi::Connect },
}

/// A layer that has been loaded, and fits. It stays loaded: libraries of this kind leave threads
/// and handlers behind that must not lose their code.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) calls: Calls,
    pub(crate) finding: Finding,
    pub(crate) gather: Option<abi::Gather>,
    pub(crate) block: Option<abi::Block>,
    pub(crate) requests: Option<Requests>,
    /// There are either these or requests.
    pub(crate) messages: Option<Messages>,
    pub(crate) registers: Option<Registers>,
    /// Only where it registers memory, and has messages.
    pub(crate) one_sided: Option<OneSided>,
}

impl Plugin {
    /// Loads the layer in `file`.
    pub fn load(file: &Path) -> Result<Self, PluginError> {
        let error = |text: String| PluginError(format!("the plugin {} {text}", file.display()));
        let cannot = |cause: libloading::Error| error(format!("cannot be loaded: {}", says(&cause)));
        // A name without a slash is looked for elsewhere than in this folder.
        let path = std::path::absolute(file).map_err(PluginError::new)?;
        // SAFETY: loading runs the library's own initialisers; it is trusted like one that is
        // linked. Its symbols are global because libraries such as Open MPI load parts of
        // themselves that expect to find them.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }.map_err(cannot)?;
        // SAFETY: the symbol is an object; its address is taken as such and not looked at here.
        let layer = unsafe { library.get::<*const Layer>(SYMBOL) }
            .map(|symbol| *symbol)
            .map_err(|_| error("is no layer: it has no symbol netdyno_layer".into()))?;
        std::mem::forget(library);
        // SAFETY: every version of the structure begins with two numbers of 32 bits, and the
        // library is never unloaded.
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
        // SAFETY: of this version and as long as it says. What it has not is left zero, and null
        // pointers to functions are `None`.
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
        // SAFETY: the header asks for a string, and it lasts as long as the library.
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
        // A layer that can ask may do without messages, with all that belongs to them.
        let has_messages = requests.is_none() || layer.post_receive.is_some();
        let messages = has_messages.then(|| messages_of(layer)).transpose()?;
        let registers = can(abi::REGISTERS).then(|| registers_of(layer)).transpose()?;
        let one_sided = can(abi::ONE_SIDED).then(|| one_sided_of(layer)).transpose()?;
        // Its memory is registered, and its slots are those of sends.
        if one_sided.is_some() && (registers.is_none() || messages.is_none()) {
            return Err("has put and get without messages, or without registering memory".into());
        }
        Ok(Self { name, calls, finding, gather, block, requests, messages, registers, one_sided })
    }

    /// What it calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its processes are started by a launcher of its own, which says who is who.
    pub fn has_launcher(&self) -> bool {
        matches!(self.finding, Finding::Launcher)
    }

    /// Whether it has requests and replies of its own.
    pub fn requests(&self) -> bool {
        self.requests.is_some()
    }

    /// Whether it has messages.
    pub fn messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Whether it knows memory.
    pub fn registers(&self) -> bool {
        self.registers.is_some()
    }

    /// Whether it knows memory, and reaches into that of others by put and get.
    pub fn one_sided(&self) -> bool {
        self.one_sided.is_some()
    }

    /// Whether a process can sleep until something may have come.
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

/// The system's own words where there are any.
fn says(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    one_line(&cause.unwrap_or_else(|| error.to_string()))
}
