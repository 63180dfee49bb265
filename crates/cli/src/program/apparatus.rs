//! A program over dials: the folder of its run, the environment that loads the hook into libfabric, and the
//! statistics of its ranks.

use crate::program::guard::GuardedFolder;
use crate::terminal::fault::Fault;
use netdyno_apparatus_fi::account::Account;
use netdyno_apparatus_fi::page::{self, Page, Plan};
use netdyno_clock::calibrate::Clock;
use netdyno_protocol::dial::stamp::Grain;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that libfabric loads.
struct Library {
    /// What it is.
    noun: &'static str,
    /// Its crate.
    package: &'static str,
    /// File name in the folder where libfabric looks for it.
    installed: &'static str,
    /// File name as cargo builds it.
    built: &'static str,
    /// Environment variable with its path, if it is elsewhere.
    variable: &'static str,
}

const HOOK: Library = Library {
    noun: "hook",
    package: "netdyno-apparatus",
    installed: "libnetdyno_apparatus-fi.so",
    built: "libnetdyno_apparatus_fi.so",
    variable: "NETDYNO_HOOK",
};
const PROVIDER: Library = Library {
    noun: "provider",
    package: "netdyno-provider",
    installed: "libnetdyno_provider-fi.so",
    built: "libnetdyno_provider_fi.so",
    variable: "NETDYNO_PROVIDER",
};
/// Kinds of network devices that have a libfabric provider of their own.
const FABRICS: &[&str] =
    &["/sys/class/infiniband", "/sys/class/cxi", "/sys/class/cxi_user", "/sys/class/hfi1"];

/// The environment of a run: its folder and its provider.
pub struct Apparatus {
    folder: GuardedFolder,
    provider: Option<String>,
}

impl Apparatus {
    /// Creates the folder of a run. `provider` is a libfabric provider. Without one, the default is tcp,
    /// unless a network has a provider of its own.
    pub fn prepare(plan: &Plan, provider: Option<&str>) -> Result<Self, Fault> {
        let provider = provider_of(provider);
        // A user's folder of providers has its own.
        let is_own = provider.as_deref() == Some("netdyno") && env::var_os("FI_PROVIDER_PATH").is_none();
        let libraries = if is_own { &[HOOK, PROVIDER][..] } else { &[HOOK] };
        let found = libraries.iter().map(|library| Ok((library, library.find()?)));
        let found: Vec<_> = found.collect::<Result<_, Fault>>()?;
        let folder = folder(plan)?;
        for (library, path) in found {
            symlink(&path, folder.path().join(library.installed)).map_err(|error| unlaid(&error))?;
        }
        Ok(Self { folder, provider })
    }

    /// Returns the command of the program, with the hook.
    pub fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(words.first().map_or(OsStr::new(""), OsString::as_os_str));
        command.args(words.iter().skip(1)).envs(self.variables());
        command
    }

    /// Returns the environment variables that load the hook into a program.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let folder = self.folder.path().as_os_str();
        let mut variables = vec![
            (page::FOLDER, folder.to_owned()),
            ("FI_PROVIDER_PATH", joined(folder, ":", "FI_PROVIDER_PATH")),
            // The name alone would mean the provider `netdyno`.
            ("FI_HOOK", joined(OsStr::new("ofi_hook_netdyno"), ";", "FI_HOOK")),
        ];
        variables.extend(through_libfabric(self.provider.as_deref()));
        // The option takes precedence over the variable FI_PROVIDER, which is its default.
        variables.extend(self.provider.iter().map(|provider| ("FI_PROVIDER", provider.into())));
        variables
    }

    /// Returns the libfabric provider, if it is known.
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// Returns the folder of the run.
    pub fn folder(&self) -> &GuardedFolder {
        &self.folder
    }

    /// Reads the statistics of the ranks.
    pub fn accounts(&self) -> Result<Vec<Account>, Fault> {
        Account::read_all(self.folder.path())
            .map_err(|error| Fault::Failed(format!("cannot read what the ranks have left: {error}")))
    }
}

/// Returns the variables that make an MPI send every message through libfabric, as far as the user has not set them.
pub fn through_libfabric(provider: Option<&str>) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![
        // MPICH: use libfabric, even between ranks of one host.
        ("MPIR_CVAR_CH4_NETMOD", "ofi".into()),
        ("MPIR_CVAR_NOLOCAL", "1".into()),
        // Open MPI: the same. Collective operations in shared memory would bypass libfabric.
        ("OMPI_MCA_pml", "cm".into()),
        ("OMPI_MCA_mtl", "ofi".into()),
        ("OMPI_MCA_coll", "^sm,han".into()),
    ];
    if let Some(provider) = provider {
        // In libfabric before 1.18 tcp needs ofi_rxm on top of it.
        let both = if provider == "tcp" { "tcp,tcp;ofi_rxm" } else { provider };
        variables.push(("OMPI_MCA_opal_common_ofi_provider_include", both.into()));
        variables.push(("OMPI_MCA_mtl_ofi_provider_include", both.into()));
    }
    variables.retain(|(name, _)| env::var_os(name).is_none());
    variables
}

/// Lays netdyno's provider into a folder, where libfabric finds it.
pub fn lay_provider(folder: &Path) -> Result<(), Fault> {
    let path = PROVIDER.find()?;
    symlink(&path, folder.join(PROVIDER.installed)).map_err(|error| unlaid(&error))
}

/// Returns the shift from clock ticks to ticks of stamps. It is computed here for all ranks, because they
/// might compute different values.
pub fn grain_shift() -> u32 {
    Grain::of(Clock::calibrate().tick_ns).shift()
}

/// Creates a folder with only a control block.
pub fn folder(plan: &Plan) -> Result<GuardedFolder, Fault> {
    let folder = GuardedFolder::new().map_err(|error| unlaid(&error))?;
    Page::create(folder.path(), plan).map_err(|error| unlaid(&error))?;
    Ok(folder)
}

fn unlaid(error: &io::Error) -> Fault {
    Fault::Failed(format!("cannot lay out the folder of a run: {error}"))
}

/// Puts netdyno's entry before the user's in the list of an environment variable.
fn joined(ours: &OsStr, by: &str, variable: &str) -> OsString {
    let mut list = ours.to_owned();
    if let Some(theirs) = env::var_os(variable).filter(|theirs| !theirs.is_empty()) {
        list.push(by);
        list.push(theirs);
    }
    list
}

/// Returns the provider that carries a program's messages, if it is known. `named` is the one that the user named
/// by an option.
pub fn provider_of(named: Option<&str>) -> Option<String> {
    named.map(str::to_owned).or_else(default_provider)
}

/// Returns the user's FI_PROVIDER, or tcp if no network has a provider of its own.
fn default_provider() -> Option<String> {
    match env::var("FI_PROVIDER") {
        Ok(said) => Some(said),
        Err(_) => (!FABRICS.iter().any(|path| Path::new(path).exists())).then(|| "tcp".to_owned()),
    }
}

impl Library {
    /// Finds the library beside this command, or in the folder where it was installed.
    fn find(&self) -> Result<PathBuf, Fault> {
        let Self { noun, package, installed, built, variable } = self;
        if let Some(named) = env::var_os(variable) {
            let path = PathBuf::from(named);
            return match path.canonicalize() {
                Ok(path) => Ok(path),
                Err(error) => Err(Fault::BadInput(format!("{variable}={}: {error}", path.display()))),
            };
        }
        let exe =
            env::current_exe().map_err(|error| Fault::Failed(format!("where is this command? {error}")))?;
        let folder = exe.parent().unwrap_or(Path::new("."));
        // Cargo leaves the library in one of two places; the older file belongs to another build.
        let places = [folder.join(built), folder.join("deps").join(built)];
        let newest =
            places.into_iter().max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok());
        let places =
            [folder.join(installed), newest.unwrap_or_default(), folder.join("../lib").join(installed)];
        places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            Fault::Failed(format!(
                "the {noun} {installed} is not beside {}: build it (cargo build --release -p {package}) or name it in \
                 {variable}",
                exe.display()
            ))
        })
    }
}
