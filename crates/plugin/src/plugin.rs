//! Loading a layer, and checking it before anything of it is called.

use crate::abi::{self, Layer};
use crate::{PluginError, one_line};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::CStr;
use std::mem::size_of;
use std::path::Path;

/// The symbol that a layer exports.
const SYMBOL: &[u8] = b"netdyno_layer\0";

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
        if (size as usize) < size_of::<Layer>() {
            return Err(error(format!(
                "is too small for version {version} of the interface: its table has {size} bytes, not {}",
                size_of::<Layer>()
            )));
        }
        // SAFETY: of this version and at least as long, so that it is a `netdyno_layer`; null
        // pointers to functions are `None`.
        Self::checked(unsafe { &*layer }).map_err(error)
    }

    fn checked(layer: &Layer) -> Result<Self, String> {
        let lacks = |what: &str| format!("lacks the function {what}");
        let can = |capability: u64| layer.capabilities & capability != 0;
        if layer.name.is_null() {
            return Err("has no name".into());
        }
        // SAFETY: the header asks for a string, and it lasts as long as the library.
        let name = one_line(&unsafe { CStr::from_ptr(layer.name) }.to_string_lossy());
        let calls = Calls {
            open: layer.open.ok_or_else(|| lacks("open"))?,
            describe: layer.describe.ok_or_else(|| lacks("describe"))?,
            close: layer.close.ok_or_else(|| lacks("close"))?,
        };
        let finding = if can(abi::HAS_LAUNCHER) {
            Finding::Launcher
        } else {
            Finding::Addresses {
                address: layer.address.ok_or_else(|| lacks("address"))?,
                connect: layer.connect.ok_or_else(|| lacks("connect"))?,
            }
        };
        let gather = can(abi::GATHERS).then(|| layer.gather.ok_or_else(|| lacks("gather")));
        let block = can(abi::BLOCKS).then(|| layer.block.ok_or_else(|| lacks("block")));
        let (gather, block) = (gather.transpose()?, block.transpose()?);
        let requests = can(abi::REQUESTS).then(|| {
            Ok::<_, String>(Requests {
                request: layer.request.ok_or_else(|| lacks("request"))?,
                take_reply: layer.take_reply.ok_or_else(|| lacks("take_reply"))?,
                answer: layer.answer.ok_or_else(|| lacks("answer"))?,
            })
        });
        let requests = requests.transpose()?;
        // A layer that can ask may do without messages, with all that belongs to them.
        let messages = if requests.is_some() && layer.post_receive.is_none() {
            None
        } else {
            Some(Messages {
                post_receive: layer.post_receive.ok_or_else(|| lacks("post_receive"))?,
                post_send: layer.post_send.ok_or_else(|| lacks("post_send"))?,
                test_receive: layer.test_receive.ok_or_else(|| lacks("test_receive"))?,
                test_send: layer.test_send.ok_or_else(|| lacks("test_send"))?,
                cancel_receive: layer.cancel_receive.ok_or_else(|| lacks("cancel_receive"))?,
            })
        };
        Ok(Self { name, calls, finding, gather, block, requests, messages })
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

    /// Whether a process can sleep until something may have come.
    pub fn blocks(&self) -> bool {
        self.block.is_some()
    }
}

/// The system's own words where there are any.
fn says(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    one_line(&cause.unwrap_or_else(|| error.to_string()))
}
