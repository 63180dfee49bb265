//! Layers in C that this process's environment names, and the opening of their channels.

use super::parameter::Parameter;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::onesided::data::Memory;
use netdyno_plugin::channel::{Channel, Opening, Place, Uses};
use netdyno_plugin::plugin::Plugin;
use netdyno_plugin::site::{build, find};
use netdyno_plugin::source::Source;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable with the file of the built layer `mpi`. Without it, the layer is built.
pub const MPI_PLUGIN: &str = "NETDYNO_PLUGIN_MPI";
/// The variable with the level of thread support that MPI is asked for.
pub const MPI_THREAD: &str = "NETDYNO_MPI_THREAD";
/// The variable with the file of the built layer `ofi`. Without it, the layer is built.
pub const OFI_PLUGIN: &str = "NETDYNO_PLUGIN_OFI";
/// The variable with the file of the built layer `ucx`. Without it, the layer is built.
pub const UCX_PLUGIN: &str = "NETDYNO_PLUGIN_UCX";
/// The variable with the file of a user's own layer.
pub const OWN_PLUGIN: &str = "NETDYNO_PLUGIN";
/// The variable with the settings of a user's own layer: `name=value`, separated by commas.
pub const OWN_SETTINGS: &str = "NETDYNO_PLUGIN_SETTINGS";
/// Returns the value of a variable of this process's environment, if it is not empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A built layer in C, and its settings.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The file of the built layer.
    pub file: PathBuf,
    /// The settings, `name=value`.
    pub settings: Vec<String>,
}

impl Extension {
    /// Returns MPI. Builds the layer, unless this process's environment names a built one.
    ///
    /// # Errors
    /// MPI is not here, or the layer cannot be built.
    pub fn mpi() -> Result<Self, LayerError> {
        let file = Self::file(MPI_PLUGIN, &Source::mpi())?;
        let thread = variable(MPI_THREAD).map(|level| format!("thread={}", level.to_string_lossy()));
        Ok(Self { file, settings: thread.into_iter().collect() })
    }

    /// Returns libfabric with a provider. Builds the layer, unless the environment names a built one.
    ///
    /// # Errors
    /// libfabric is not here, or the layer cannot be built.
    pub fn ofi(provider: Parameter) -> Result<Self, LayerError> {
        let file = Self::file(OFI_PLUGIN, &Source::ofi())?;
        Ok(Self { file, settings: vec![format!("provider={provider}")] })
    }

    /// Returns UCX over transports, separated by +. Builds the layer, unless the environment names a built
    /// one.
    ///
    /// # Errors
    /// UCX is not here, or the layer cannot be built.
    pub fn ucx(transports: Parameter) -> Result<Self, LayerError> {
        let file = Self::file(UCX_PLUGIN, &Source::ucx())?;
        Ok(Self { file, settings: vec![format!("transports={transports}")] })
    }

    /// Returns the file that the variable names. Builds the layer if it names none.
    fn file(name: &str, source: &Source) -> Result<PathBuf, LayerError> {
        match variable(name) {
            Some(file) => Ok(file.into()),
            None => build(source, None).map_err(LayerError::new),
        }
    }

    /// Returns the user's own layer that this process's environment names.
    ///
    /// # Errors
    /// The environment names none.
    pub fn own() -> Result<Self, LayerError> {
        let file = variable(OWN_PLUGIN).map(PathBuf::from).ok_or_else(|| {
            LayerError(format!("{OWN_PLUGIN} names no built layer: `netdyno plugin build FILE.c` builds one"))
        })?;
        let settings = variable(OWN_SETTINGS).unwrap_or_default().to_string_lossy().into_owned();
        let settings = settings.split(',').filter(|setting| !setting.is_empty()).map(str::to_owned);
        Ok(Self { file, settings: settings.collect() })
    }

    /// Opens the layer. `place` is the place of this process, for a layer without a launcher that assigns
    /// ranks.
    pub(super) fn open(
        &self,
        room: Room,
        place: Place,
        Use { uses, memory: of_whom, wait }: Use,
    ) -> Result<Channel, LayerError> {
        let Room { slots, largest, memory } = room;
        let plugin = self.load(wait)?;
        if uses != Uses::Messages && !plugin.registers() {
            return Err(LayerError(format!("{} has no memory to register", plugin.name())));
        }
        if uses.is_one_sided() && !plugin.one_sided() {
            return Err(LayerError(format!("{} has no put and get", plugin.name())));
        }
        if uses == Uses::Fence && !plugin.fences() || uses == Uses::Post && !plugin.posts() {
            return Err(LayerError(format!("{} has no epochs of this kind: use --sync lock", plugin.name())));
        }
        let allocates = of_whom == Memory::Allocated;
        if allocates && !plugin.allocates() {
            let name = plugin.name();
            return Err(LayerError(format!(
                "{name} allocates no memory of its own: use --memory registered"
            )));
        }
        let opening = Opening {
            place,
            slots,
            largest,
            memory,
            uses,
            blocks: wait.sleeps(),
            allocates,
            settings: &self.settings,
        };
        Channel::open(plugin, &opening).map_err(LayerError::new)
    }

    /// Loads the layer for processes that wait in this way.
    fn load(&self, wait: Wait) -> Result<Plugin, LayerError> {
        let plugin = Plugin::load(&self.file).map_err(LayerError::new)?;
        if wait.sleeps() && !plugin.blocks() {
            return Err(LayerError(format!("{} cannot sleep: use --wait spin or yield", plugin.name())));
        }
        Ok(plugin)
    }

    /// Opens the layer for processes that wait in this way, and closes it. A layer whose own launcher starts its
    /// processes is only loaded.
    pub(crate) fn try_to_open(&self, wait: Wait) -> Result<(), LayerError> {
        if self.load(wait)?.has_launcher() {
            return Ok(());
        }
        self.open(Room::SMALLEST, ALONE, Use::of(Uses::Messages, wait)).map(drop)
    }

    /// Opens the layer for messages between processes, and for one-sided operations if `uses` says so.
    pub(super) fn open_among_others(
        &self,
        room: Room,
        place: Place,
        usage: Use,
    ) -> Result<Channel, LayerError> {
        let channel = self.open(room, place, usage)?;
        if channel.place().ranks < 2 {
            return Err(LayerError(format!(
                "{} sees one process alone: start processes by the launcher of the same library, as in mpiexec -n 2 or srun --mpi=pmi2",
                channel.plugin().name()
            )));
        }
        Ok(channel)
    }
}

/// How a channel is used.
pub(super) struct Use {
    /// For what.
    pub(super) uses: Uses,
    /// Whose memory is put into and got from.
    pub(super) memory: Memory,
    /// The wait policy.
    pub(super) wait: Wait,
}

impl Use {
    /// Returns the use without memory of the library.
    pub(super) fn of(uses: Uses, wait: Wait) -> Self {
        Self { uses, memory: Memory::Registered, wait }
    }
}

/// The capacity of a channel.
pub(super) struct Room {
    /// Slots for sends, and for receives.
    pub(super) slots: usize,
    /// The size of the largest message, in bytes.
    pub(super) largest: usize,
    /// The memory of receives and of sends, in bytes.
    pub(super) memory: (usize, usize),
}

impl Room {
    /// The capacity of a channel that carries no message.
    pub(super) const SMALLEST: Self = Self { slots: 1, largest: 1, memory: (1, 1) };
}

/// The place of a process without others.
pub(super) const ALONE: Place = Place { rank: 0, ranks: 1 };

/// Returns why there is no MPI here, if there is none. MPI is not started.
pub(crate) fn mpi_is_missing() -> Option<String> {
    is_missing(MPI_PLUGIN, &Source::mpi())
}

/// Returns why there is no libfabric here, if there is none.
pub(crate) fn ofi_is_missing() -> Option<String> {
    is_missing(OFI_PLUGIN, &Source::ofi())
}

/// Returns why there is no UCX here, if there is none.
pub(crate) fn ucx_is_missing() -> Option<String> {
    is_missing(UCX_PLUGIN, &Source::ucx())
}

fn is_missing(name: &str, source: &Source) -> Option<String> {
    match variable(name) {
        Some(file) => Plugin::load(Path::new(&file)).err(),
        None => find(source, None).err(),
    }
    .map(|error| error.to_string())
}

/// Returns why there is no layer of the user's own, if there is none.
pub(crate) fn own_is_missing() -> Option<String> {
    let loaded = Extension::own().and_then(|own| Plugin::load(&own.file).map_err(LayerError::new));
    loaded.err().map(|error| error.0)
}

/// Checks that a channel carries messages of a fixed size.
///
/// # Errors
/// Its largest message is smaller.
pub(super) fn check_size(channel: &Channel, size_bytes: usize) -> Result<(), LayerError> {
    if channel.largest() >= size_bytes {
        return Ok(());
    }
    let name = channel.plugin().name();
    Err(LayerError(format!(
        "{size_bytes} bytes are more than the {} that {name} carries in a message",
        channel.largest()
    )))
}
