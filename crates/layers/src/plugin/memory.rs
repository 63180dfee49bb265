//! Registration of memory with a layer in C, by one process alone.

use super::extension::{ALONE, Extension, Room, Use};
use crate::registrar::MemoryLayer;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{Channel, Uses};

/// The region that is measured.
const MEASURED: usize = 0;
/// The region that is registered to warm up.
const SPARE: usize = 1;

/// A layer that is open in this process alone.
pub(crate) struct PluginMemory {
    channel: Channel,
    library: String,
}

impl PluginMemory {
    /// Opens the layer.
    pub(crate) fn open(extension: &Extension) -> Result<Self, LayerError> {
        let mut channel = extension.open(Room::SMALLEST, ALONE, Use::of(Uses::Memory, Wait::Spin))?;
        channel.renew_ground(SPARE, 1).map_err(LayerError::new)?;
        channel.touch_ground(SPARE);
        let library = channel.description();
        Ok(Self { channel, library })
    }

    /// Returns the name and version of the library behind the layer.
    pub(crate) fn library(&self) -> String {
        self.library.clone()
    }
}

impl MemoryLayer for PluginMemory {
    fn renew(&mut self, bytes: usize) -> Result<(), LayerError> {
        self.channel.renew_ground(MEASURED, bytes).map_err(LayerError::new)
    }

    fn touch(&mut self) {
        self.channel.touch_ground(MEASURED);
    }

    fn warm_up(&mut self) -> Result<(), LayerError> {
        self.channel.register_ground(SPARE).map_err(LayerError::new)?;
        self.channel.deregister_ground(SPARE).map_err(LayerError::new)
    }

    #[inline(always)]
    fn register(&mut self) -> Result<(), LayerError> {
        self.channel.register_ground(MEASURED).map_err(LayerError::new)
    }

    #[inline(always)]
    fn deregister(&mut self) -> Result<(), LayerError> {
        self.channel.deregister_ground(MEASURED).map_err(LayerError::new)
    }
}
