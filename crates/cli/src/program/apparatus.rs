//! A program under dials: the folder of its run, the environment that puts the hook in its way, and
//! what its ranks say afterwards.

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

/// The hook, as libfabric finds it in a folder.
const HOOK: &str = "libnetdyno_apparatus-fi.so";
/// The hook, as cargo names it.
const BUILT: &str = "libnetdyno_apparatus_fi.so";
/// Names a hook that lies elsewhere.
const VARIABLE: &str = "NETDYNO_HOOK";
/// Kinds of network devices that bring a provider of libfabric with them.
const FABRICS: &[&str] =
    &["/sys/class/infiniband", "/sys/class/cxi", "/sys/class/cxi_user", "/sys/class/hfi1"];

/// What a program is run with, and how its run is looked at.
pub struct Apparatus {
    folder: GuardedFolder,
    provider: Option<String>,
}

impl Apparatus {
    /// Lays out the folder of a run. `provider` is libfabric's; without one, and without a network
    /// that has its own, tcp.
    pub fn prepare(plan: &Plan, provider: Option<&str>) -> Result<Self, Fault> {
        let hook = find_hook()?;
        let folder = folder(plan)?;
        symlink(&hook, folder.path().join(HOOK)).map_err(|error| unlaid(&error))?;
        let provider = provider.map(str::to_owned).or_else(default_provider);
        Ok(Self { folder, provider })
    }

    /// The program, with the hook in its way.
    pub fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(words.first().map_or(OsStr::new(""), OsString::as_os_str));
        command.args(words.iter().skip(1)).envs(self.variables());
        command
    }

    /// The environment that puts the hook in a program's way.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let folder = self.folder.path().as_os_str();
        let mut variables = vec![
            (page::FOLDER, folder.to_owned()),
            ("FI_PROVIDER_PATH", joined(folder, ":", "FI_PROVIDER_PATH")),
            ("FI_HOOK", joined(OsStr::new("netdyno"), ";", "FI_HOOK")),
        ];
        // What the user has said of them goes first.
        let unsaid = self.defaults().into_iter().filter(|(name, _)| env::var_os(name).is_none());
        variables.extend(unsaid.map(|(name, value)| (name, value.into())));
        // The option goes before the variable, and is the variable where it is not given.
        variables.extend(self.provider.iter().map(|provider| ("FI_PROVIDER", provider.into())));
        variables
    }

    /// What lets an MPI send every message through libfabric.
    fn defaults(&self) -> Vec<(&'static str, String)> {
        let mut defaults = vec![
            // MPICH: libfabric, also between ranks of one host.
            ("MPIR_CVAR_CH4_NETMOD", "ofi".into()),
            ("MPIR_CVAR_NOLOCAL", "1".into()),
            // Open MPI, the same; collective operations in shared memory would go round it.
            ("OMPI_MCA_pml", "cm".into()),
            ("OMPI_MCA_mtl", "ofi".into()),
            ("OMPI_MCA_coll", "^sm,han".into()),
        ];
        if let Some(provider) = &self.provider {
            // In libfabric before 1.18 tcp takes another provider on top of it.
            let both = if provider == "tcp" { "tcp,tcp;ofi_rxm".into() } else { provider.clone() };
            defaults.push(("OMPI_MCA_opal_common_ofi_provider_include", both.clone()));
            defaults.push(("OMPI_MCA_mtl_ofi_provider_include", both));
        }
        defaults
    }

    /// The provider of libfabric, where it is known.
    pub fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// The folder of the run.
    pub fn folder(&self) -> &GuardedFolder {
        &self.folder
    }

    /// What the ranks say of themselves.
    pub fn accounts(&self) -> Result<Vec<Account>, Fault> {
        Account::read_all(self.folder.path())
            .map_err(|error| Fault::Failed(format!("cannot read what the ranks have left: {error}")))
    }
}

/// How far ticks are shifted in stamps here: each rank alone might come to another number.
pub fn grain_shift() -> u32 {
    Grain::of(Clock::calibrate().tick_ns).shift()
}

/// A folder with a page alone.
pub fn folder(plan: &Plan) -> Result<GuardedFolder, Fault> {
    let folder = GuardedFolder::new().map_err(|error| unlaid(&error))?;
    Page::create(folder.path(), plan).map_err(|error| unlaid(&error))?;
    Ok(folder)
}

fn unlaid(error: &io::Error) -> Fault {
    Fault::Failed(format!("cannot lay out the folder of a run: {error}"))
}

/// Ours, and what the user has in a list of the same kind.
fn joined(ours: &OsStr, by: &str, variable: &str) -> OsString {
    let mut list = ours.to_owned();
    if let Some(theirs) = env::var_os(variable).filter(|theirs| !theirs.is_empty()) {
        list.push(by);
        list.push(theirs);
    }
    list
}

/// Said by the user to libfabric itself, or tcp where there is no network that has its own.
fn default_provider() -> Option<String> {
    match env::var("FI_PROVIDER") {
        Ok(said) => Some(said),
        Err(_) => (!FABRICS.iter().any(|path| Path::new(path).exists())).then(|| "tcp".to_owned()),
    }
}

/// The hook lies where the command lies, or where it was installed to.
fn find_hook() -> Result<PathBuf, Fault> {
    if let Some(named) = env::var_os(VARIABLE) {
        let path = PathBuf::from(named);
        return match path.canonicalize() {
            Ok(path) => Ok(path),
            Err(error) => Err(Fault::BadInput(format!("{VARIABLE}={}: {error}", path.display()))),
        };
    }
    let exe = env::current_exe().map_err(|error| Fault::Failed(format!("where is this command? {error}")))?;
    let folder = exe.parent().unwrap_or(Path::new("."));
    // Cargo leaves it in either of two places: the older one is of another build.
    let built = [folder.join(BUILT), folder.join("deps").join(BUILT)];
    let built = built.into_iter().max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok());
    let places = [folder.join(HOOK), built.unwrap_or_default(), folder.join("../lib").join(HOOK)];
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Fault::Failed(format!(
            "the hook {HOOK} is not beside {}: build it (cargo build --release) or name it in {VARIABLE}",
            exe.display()
        ))
    })
}
