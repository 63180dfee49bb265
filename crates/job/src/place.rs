//! The rank of a process in a job and the job size, as launchers set them in the environment.

use serde::{Deserialize, Serialize};
use std::process::Command;
use thiserror::Error;

/// The rank of a process and the size of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Rank, from 0.
    pub rank: usize,
    /// Number of processes in the job.
    pub procs: usize,
}

/// Variables in which launchers report rank and size: Hydra and its relatives (MPICH, Intel MPI), PRRTE and
/// ORTE (Open MPI), Slurm, Flux. The size of Slurm is that of the step. A batch script belongs to no step,
/// because it is a single process in an allocation for many.
const NAMES: [(&str, &str); 4] = [
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
];

/// Variables in which launchers report the rank of a process on its host.
const LOCAL_NAMES: [&str; 4] =
    ["MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "FLUX_TASK_LOCAL_ID"];

/// Other variables in which launchers tell a process of its job and of their own servers.
const OTHER_NAMES: [&str; 13] = [
    "PMI_FD",
    "PMI_ID",
    "PMI_PORT",
    "PMI_SPAWNED",
    "PMI2_RANK",
    "PMI2_SIZE",
    "PMIX_NAMESPACE",
    "PMIX_RANK",
    "PMIX_SERVER_URI2",
    "PMIX_SERVER_URI3",
    "PMIX_SERVER_URI4",
    "PMIX_SERVER_URI41",
    "MPI_LOCALNRANKS",
];

/// Returns the variables of all launchers. A launcher inside another one must not pass on that one's.
pub fn variables() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().flat_map(|(rank, procs)| [rank, procs]).chain(LOCAL_NAMES).chain(OTHER_NAMES)
}

/// Tells a process its place in a job on this host, as Hydra does.
pub fn set(command: &mut Command, Place { rank, procs }: Place) -> &mut Command {
    for (name, count) in
        [("PMI_RANK", rank), ("PMI_SIZE", procs), ("MPI_LOCALRANKID", rank), ("MPI_LOCALNRANKS", procs)]
    {
        command.env(name, count.to_string());
    }
    command
}

/// Reports whether the launcher has started a process of this job with a lower rank on this host.
pub fn has_elder_here() -> bool {
    let local = LOCAL_NAMES.iter().find_map(|name| std::env::var(name).ok());
    local.and_then(|rank| rank.parse::<usize>().ok()).is_some_and(|rank| rank > 0)
}

/// The variables of a launcher that name no process of a job.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{rank}='{ranked}' and {procs}='{counted}' name no process of a job: unset them, or start netdyno by its launcher"
)]
pub struct NoPlace {
    /// The name of the variable of the rank, and its value.
    rank: &'static str,
    ranked: String,
    /// The name of the variable of the size, and its value.
    procs: &'static str,
    counted: String,
}

impl Place {
    /// Returns the place of this process, or `None` if no launcher has started it.
    ///
    /// # Errors
    /// The variables of a launcher contradict each other.
    pub fn of_this_process() -> Result<Option<Self>, NoPlace> {
        Self::told_by(|name| std::env::var(name).ok())
    }

    /// Takes the first launcher that tells both variables.
    fn told_by(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, NoPlace> {
        let told = NAMES.into_iter().find_map(|(rank, procs)| {
            Some(NoPlace { rank, ranked: variable(rank)?, procs, counted: variable(procs)? })
        });
        let Some(told) = told else { return Ok(None) };
        match (told.ranked.parse(), told.counted.parse()) {
            (Ok(rank), Ok(procs)) if rank < procs => Ok(Some(Self { rank, procs })),
            _ => Err(told),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_set_is_understood() {
        let (mut command, place) = (Command::new("x"), Place { rank: 3, procs: 7 });
        set(&mut command, place);
        let value = |name: &str| {
            let (_, value) = command.get_envs().find(|(known, _)| *known == name)?;
            value?.to_str().map(str::to_owned)
        };
        assert_eq!(Place::told_by(value), Ok(Some(place)));
        assert!(command.get_envs().all(|(name, _)| variables().any(|known| name == known)));
    }

    #[test]
    fn every_launcher_is_understood_and_nonsense_is_refused() {
        let told = |text: &'static str| {
            Place::told_by(move |name| {
                text.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
            })
        };
        let second = Ok(Some(Place { rank: 1, procs: 4 }));
        for text in [
            "PMI_RANK=1 PMI_SIZE=4",
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4",
            "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4",
            "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4",
            "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 PMI_RANK=1 PMI_SIZE=4",
        ] {
            assert_eq!(told(text), second, "{text}");
        }
        for text in ["", "PMI_RANK=1", "SLURM_PROCID=0 SLURM_NTASKS=4"] {
            assert_eq!(told(text), Ok(None), "{text}");
        }
        for text in ["PMI_RANK=4 PMI_SIZE=4", "PMI_RANK=-1 PMI_SIZE=4", "PMI_RANK=a PMI_SIZE=b"] {
            let error = told(text).unwrap_err().to_string();
            assert!(error.starts_with("PMI_RANK='") && error.contains("unset them"), "{error}");
        }
    }
}
