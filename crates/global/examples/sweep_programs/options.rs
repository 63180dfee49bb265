//! The command line.

use netdyno_job::launcher::Launcher;
use std::path::PathBuf;

/// The usage.
pub const USAGE: &str = "usage: sweep_programs [--launcher 'mpiexec --bind-to core -n {n}'] [--ranks 2] [--repetitions 5] [--seed 1] \
                         [--only PROGRAM] [--out FOLDER]";

/// The options.
pub struct Options {
    /// Starts the ranks.
    pub launcher: Launcher,
    /// The number of ranks.
    pub ranks: u32,
    /// The number of runs of each value.
    pub repetitions: usize,
    /// The seed of the order of runs.
    pub seed: u64,
    /// The only program to sweep.
    pub only: Option<String>,
    /// Keeps the records.
    pub out: Option<PathBuf>,
    /// The folder of the programs, which are built beside this one.
    pub folder: PathBuf,
}

impl Options {
    /// Parses the options. Returns `None` if they ask for help.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let here = std::env::current_exe().map_err(|error| format!("cannot find the programs: {error}"))?;
        let mut options = Self {
            launcher: "mpiexec --bind-to core -n {n}"
                .parse::<Launcher>()
                .map_err(|error| error.to_string())?,
            ranks: 2,
            repetitions: 5,
            seed: 1,
            only: None,
            out: None,
            folder: here.parent().map(PathBuf::from).unwrap_or_default(),
        };
        while let Some(name) = words.next() {
            if name == "--help" {
                return Ok(None);
            }
            let value = words.next().ok_or_else(|| format!("{name} has no value: see --help"))?;
            match &name[..] {
                "--launcher" => {
                    let parsed = value.parse();
                    options.launcher = parsed.map_err(|error| format!("--launcher '{value}': {error}"))?;
                }
                "--ranks" => options.ranks = number(&name, &value, 64)? as u32,
                "--repetitions" => options.repetitions = number(&name, &value, 1000)? as usize,
                "--seed" => options.seed = number(&name, &value, u64::MAX)?,
                "--only" => {
                    if super::subjects(Some(&value)).is_empty() {
                        return Err(format!("--only '{value}' is not swept: name an example, as in em3d"));
                    }
                    options.only = Some(value);
                }
                "--out" => options.out = Some(value.into()),
                _ => return Err(format!("there is no option {name}: see --help")),
            }
        }
        Ok(Some(options))
    }
}

fn number(name: &str, text: &str, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("{name} '{text}' is not valid: use 1 to {most}"))
}
