//! How one-sided operations reach memory: the options of the verbs that measure them.

use crate::options::abilities::all_able;
use crate::options::headings::WHAT;
use crate::terminal::fault::Fault;
use clap::Args;
use netdyno_layers::catalogue::Layer;
use netdyno_measure::onesided::data::{Access, Level, Memory, Synchronisation};

/// How memory is reached.
#[derive(Debug, Args)]
pub struct AccessArgs {
    /// Choose the reliability level of Virtual Interfaces [default: delivery]
    ///
    /// It says what the completion of a put means: the wire has the bytes and may lose them (unreliable),
    /// delivers them (delivery), or has put them into the target's memory (reception).
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = ["unreliable", "delivery", "reception"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    level: Option<String>,

    /// Choose the synchronisation of MPI's operations [default: lock]
    ///
    /// The target takes no part (lock), all processes call a fence before and after the operations (fence), or the
    /// target posts its memory and waits for them (post: MPI_Win_post and MPI_Win_start).
    #[arg(
        long,
        value_name = "SYNC",
        value_parser = ["lock", "fence", "post"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    sync: Option<String>,

    /// Choose whose memory is put into and got from [default: registered]
    ///
    /// Memory of netdyno that is registered with the library, or memory that the library allocates (MPI_Win_allocate,
    /// ucp_mem_map). Within a host libraries may reach their own memory without the kernel.
    #[arg(
        long,
        value_name = "MEMORY",
        value_parser = ["registered", "allocated"],
        help_heading = WHAT,
        hide_short_help = true
    )]
    memory: Option<String>,
}

impl AccessArgs {
    /// Returns how memory is reached.
    ///
    /// # Errors
    /// A layer has no one-sided operations, or no choice that the user makes.
    pub fn checked(&self, over: &[Layer]) -> Result<Access, Fault> {
        all_able(over, Layer::has_one_sided, "one-sided operations here", "use")?;
        if self.level.is_some() {
            all_able(over, Layer::has_levels, "reliability levels", "use --level with")?;
        }
        if self.sync.is_some() {
            all_able(over, Layer::has_synchronisations, "synchronisations to choose", "use --sync with")?;
        }
        if self.memory.is_some() {
            all_able(over, Layer::allocates, "choice of memory", "use --memory with")?;
        }
        let memory = match self.memory.as_deref() {
            Some("allocated") => Memory::Allocated,
            _ => Memory::Registered,
        };
        let synchronisation = match self.sync.as_deref() {
            Some("fence") => Synchronisation::Fence,
            Some("post") => Synchronisation::Post,
            _ => Synchronisation::Lock,
        };
        let level = match self.level.as_deref() {
            Some("unreliable") => Level::Unreliable,
            Some("reception") => Level::Reception,
            _ => Level::Delivery,
        };
        Ok(Access { level, synchronisation, memory })
    }
}
