//! Registration of memory in real time, beside locking of memory by the system. A layer implements its part
//! as a `MemoryLayer`.

use crate::time::{RealTime, in_real_time};
use netdyno_host::pages::{Pages, lock_limit_bytes, page_bytes};
use netdyno_measure::layer::{LayerError, Purpose, Registrar};
use netdyno_measure::registration::data::MemorySystem;
use netdyno_measure::task::{Memory, Subject};

/// The file in which the system says when it uses huge pages by itself.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A layer that is open in this process alone, to register memory.
pub struct Opened {
    /// The name and version of the library behind the layer; `None` for netdyno's own layers.
    pub library: Option<String>,
    /// The side that measures.
    pub subject: Box<dyn Subject>,
}

impl Opened {
    /// Returns a layer that is open in this process, with the `library` behind it. Calibrates the clock.
    pub(crate) fn new(layer: impl MemoryLayer + 'static, library: Option<String>) -> Self {
        Self { library, subject: Box::new(Memory(RealRegistrar::new(layer))) }
    }
}

/// A layer that registers memory. It has one region at a time.
pub(crate) trait MemoryLayer {
    /// Gives the region back, and allocates one that nothing has touched and that is not registered.
    fn renew(&mut self, bytes: usize) -> Result<(), LayerError>;

    /// Writes to every page of the region.
    fn touch(&mut self);

    /// Registers and deregisters a page of other memory.
    fn warm_up(&mut self) -> Result<(), LayerError>;

    /// Registers the region, which may be registered already.
    fn register(&mut self) -> Result<(), LayerError>;

    /// Deregisters the region: the latest of its registrations ends.
    fn deregister(&mut self) -> Result<(), LayerError>;

    /// Returns the names of costs that do not depend on the size of a region, for [`Registrar::fixed`].
    fn fixed(&self) -> &[&'static str] {
        &[]
    }

    /// Does and undoes the `nth` of these, for [`Registrar::perform`]. Returns the ticks that doing it took.
    fn perform(&mut self, nth: usize) -> Result<u64, LayerError> {
        Err(LayerError(format!("the layer has no fixed cost {nth}")))
    }
}

/// A process that registers memory with a layer, and has the system lock memory.
struct RealRegistrar<K> {
    layer: K,
    /// The memory to lock. It takes the place of the layer's region.
    locked: Option<Pages>,
    time: RealTime,
}

impl<K: MemoryLayer> RealRegistrar<K> {
    /// Returns a process with this layer. Calibrates the clock.
    fn new(layer: K) -> Self {
        Self { layer, locked: None, time: RealTime::calibrate() }
    }

    fn pages(&mut self) -> Result<&mut Pages, LayerError> {
        self.locked.as_mut().ok_or_else(|| LayerError::new("there is no memory to lock"))
    }
}

in_real_time!(RealRegistrar<K: MemoryLayer>);

impl<K: MemoryLayer> Registrar for RealRegistrar<K> {
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
                // Only one region is large at a time.
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

/// Returns the word in brackets, as in `always [madvise] never`.
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
