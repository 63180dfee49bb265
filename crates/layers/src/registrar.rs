//! Memory that is registered in real time, beside memory that the system locks. A layer sees to its
//! own part (`Knows`) and is entered in [`open`].

use crate::catalogue::Layer;
use crate::plugin::Extension;
use crate::plugin::memory::PluginMemory;
use crate::time::{RealTime, in_real_time};
use crate::vi;
use crate::vi::memory::ViMemory;
use netdyno_host::pages::{Pages, lock_limit_bytes, page_bytes};
use netdyno_measure::layer::{LayerError, Purpose, Registrar};
use netdyno_measure::registration::data::MemorySystem;
use netdyno_measure::task::{Memory, Subject};
use netdyno_stack::vi::WireKind;
use std::net::{Ipv4Addr, SocketAddr};

/// Where the system says when it uses huge pages by itself.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A layer that is open in this process alone.
pub struct Opened {
    /// Which library of which version is behind the layer, where one is that is not netdyno's.
    pub library: Option<String>,
    /// What measures.
    pub subject: Box<dyn Subject>,
}

/// Opens a layer to have it know memory.
///
/// # Errors
/// The layer has no memory to register, or cannot be opened.
pub fn open(layer: Layer) -> Result<Opened, LayerError> {
    match layer {
        Layer::ViShm => of_vi(WireKind::Shm),
        Layer::ViUdp => of_vi(WireKind::Udp(vi::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))),
        Layer::Ofi(provider) => of_plugin(&Extension::ofi(provider)?),
        Layer::Ucx(transports) => of_plugin(&Extension::ucx(transports)?),
        Layer::Plugin => of_plugin(&Extension::own()?),
        _ => Err(LayerError(format!("{layer} has no memory to register"))),
    }
}

fn of_plugin(extension: &Extension) -> Result<Opened, LayerError> {
    let memory = PluginMemory::open(extension)?;
    let library = Some(memory.library());
    Ok(Opened { library, subject: Box::new(Memory(RealRegistrar::new(memory))) })
}

fn of_vi(wire: WireKind) -> Result<Opened, LayerError> {
    let memory = ViMemory::open(wire)?;
    Ok(Opened { library: None, subject: Box::new(Memory(RealRegistrar::new(memory))) })
}

/// A layer that can be told of memory. It has one region at a time.
pub(crate) trait Knows {
    /// Gives the region back, and takes one that nothing has touched. It is not registered.
    fn renew(&mut self, bytes: usize) -> Result<(), LayerError>;

    /// Writes to every page of the region.
    fn touch(&mut self);

    /// Registers and deregisters a page of other memory.
    fn warm_up(&mut self) -> Result<(), LayerError>;

    /// Registers the region, which may be registered already.
    fn register(&mut self) -> Result<(), LayerError>;

    /// Takes the latest registration back.
    fn deregister(&mut self) -> Result<(), LayerError>;

    /// What transfers need besides memory, as [`Registrar::fixed`] has it.
    fn fixed(&self) -> &[&'static str] {
        &[]
    }

    /// Does and undoes one of these, as [`Registrar::perform`] has it: the ticks that doing it took.
    fn perform(&mut self, nth: usize) -> Result<u64, LayerError> {
        Err(LayerError(format!("the layer has no fixed cost {nth}")))
    }
}

/// A process that has a layer know memory, and has the system lock some.
struct RealRegistrar<K> {
    layer: K,
    /// In the place of the layer's region while something is locked.
    locked: Option<Pages>,
    time: RealTime,
}

impl<K: Knows> RealRegistrar<K> {
    /// Calibrates the clock.
    fn new(layer: K) -> Self {
        Self { layer, locked: None, time: RealTime::calibrate() }
    }

    fn pages(&mut self) -> Result<&mut Pages, LayerError> {
        self.locked.as_mut().ok_or_else(|| LayerError::new("there is no memory to lock"))
    }
}

in_real_time!(RealRegistrar<K: Knows>);

impl<K: Knows> Registrar for RealRegistrar<K> {
    fn system(&self) -> MemorySystem {
        MemorySystem {
            page_bytes: page_bytes(),
            lock_limit_bytes: lock_limit_bytes(),
            huge_pages: std::fs::read_to_string(HUGE_PAGES).ok().and_then(|text| chosen(&text)),
        }
    }

    fn renew(&mut self, purpose: Purpose, bytes: usize) -> Result<(), LayerError> {
        self.locked = None;
        match purpose {
            Purpose::Register => self.layer.renew(bytes),
            Purpose::Lock => {
                // Only one of them is large at a time.
                self.layer.renew(1)?;
                self.locked = Some(Pages::untouched(bytes).map_err(LayerError::new)?);
                Ok(())
            }
        }
    }

    fn touch(&mut self) {
        match &mut self.locked {
            Some(pages) => pages.touch(),
            None => self.layer.touch(),
        }
    }

    fn warm_up(&mut self) -> Result<(), LayerError> {
        self.layer.warm_up()
    }

    #[inline(always)]
    fn register(&mut self) -> Result<(), LayerError> {
        self.layer.register()
    }

    #[inline(always)]
    fn deregister(&mut self) -> Result<(), LayerError> {
        self.layer.deregister()
    }

    #[inline(always)]
    fn lock(&mut self) -> Result<bool, LayerError> {
        self.pages()?.lock().map_err(LayerError::new)
    }

    #[inline(always)]
    fn unlock(&mut self) -> Result<(), LayerError> {
        self.pages()?.unlock().map_err(LayerError::new)
    }

    fn fixed(&self) -> &[&'static str] {
        self.layer.fixed()
    }

    fn perform(&mut self, nth: usize) -> Result<u64, LayerError> {
        self.layer.perform(nth)
    }
}

/// The word in brackets, as in `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_word_in_brackets_is_the_one_chosen() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise".into()));
        assert_eq!(chosen("always"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z\\[\\] ]{0,30}") {
            let word = chosen(&text);
            prop_assert!(word.is_none_or(|word| text.contains(&word)));
        }
    }
}
