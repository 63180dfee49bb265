//! An MPI over netdyno's provider, with the switches of the provider in the environment of each launch.

use crate::campaign::Variant;
use crate::options::bench::Measuring;
use crate::program::apparatus::{lay_provider, through_libfabric};
use crate::program::guard::GuardedFolder;
use crate::terminal::fault::Fault;
use netdyno_apparatus_fi::page::FOLDER;
use netdyno_clock::place;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Name of the provider, and of the file that it makes when a process opens it.
const NETDYNO: &str = "netdyno";
/// Number of processors at which two processes and their messaging threads have one each.
const ENOUGH: usize = 4;

/// What all stacks have in common.
pub struct Stacks {
    folder: GuardedFolder,
    /// The processor of the support process, if threads share it.
    shared_cpu: Option<usize>,
}

impl Stacks {
    /// Finds the provider, and the launcher if the user has named none.
    pub fn prepare(measuring: &mut Measuring) -> Result<Self, Fault> {
        if measuring.launcher.is_none() {
            measuring.launcher = Some(usual_launcher()?);
        }
        let folder = GuardedFolder::new()
            .map_err(|error| Fault::Failed(format!("cannot make a folder for the run: {error}")))?;
        lay_provider(folder.path())?;
        let cpus = place::allowed().unwrap_or_default();
        let named = measuring.cpus.as_ref().and_then(|cpus| cpus.0.get(1).copied());
        let support = named.or_else(|| place::choose_pair(&cpus).map(|(_, support)| support));
        Ok(Self { shared_cpu: support.filter(|_| cpus.len() < ENOUGH), folder })
    }

    /// Returns how processes wait. With fewer processors than threads, those that wait let others run.
    pub fn wait(&self) -> Option<Wait> {
        self.shared_cpu.map(|_| Wait::Yield)
    }

    /// Returns the processor for an engine that the worker must not notice; `None` if there is one for each.
    pub fn engine_cpu(&self) -> Option<String> {
        self.shared_cpu.map(|cpu| cpu.to_string())
    }

    /// Returns MPI over the provider with these switches.
    pub fn mpi(&self, label: &str, switches: &[(&'static str, &str)]) -> Variant {
        let mut variables = through_libfabric(Some(NETDYNO));
        variables.extend([
            (FOLDER, self.folder.path().into()),
            ("FI_PROVIDER_PATH", self.folder.path().into()),
            ("FI_PROVIDER", NETDYNO.into()),
            ("FI_NETDYNO_MARK", self.mark().into()),
        ]);
        variables.extend(switches.iter().map(|(name, value)| (*name, OsString::from(value))));
        Variant { layer: Layer::Mpi, label: label.into(), wait: self.wait(), variables }
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join(NETDYNO)
    }

    /// Returns an error if the MPI has not used the provider, because then all of it was measured over something else.
    pub fn check_used(&self) -> Result<(), Fault> {
        if self.mark().exists() {
            return Ok(());
        }
        let text = "the MPI did not use netdyno's provider: use one over libfabric, such as MPICH 5 or Open MPI \
                    (`pip install mpich`)";
        Err(Fault::Failed(text.into()))
    }
}

/// Returns the launcher beside the MPI compiler that netdyno uses, or the one in the path.
fn usual_launcher() -> Result<netdyno_job::launcher::Launcher, Fault> {
    let beside = env::var_os("NETDYNO_MPICC").map(|compiler| Path::new(&compiler).with_file_name("mpiexec"));
    let program = beside.filter(|path| path.is_file()).unwrap_or_else(|| "mpiexec".into());
    let quoted = shlex::try_quote(&program.to_string_lossy()).map(|text| text.into_owned());
    let launcher = quoted.ok().and_then(|program| format!("{program} -n {{n}}").parse().ok());
    launcher
        .ok_or_else(|| Fault::BadInput("name the launcher of the MPI: --launcher 'mpiexec -n {n}'".into()))
}
