//! A process's place in a job, as launchers tell it in the environment, and the machine that it
//! is on.

use serde::{Deserialize, Serialize};

/// Which process of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// From 0.
    pub rank: usize,
    /// How many there are.
    pub procs: usize,
}

/// How launchers name rank and number of processes: Hydra and its like (MPICH, Intel MPI), PRRTE
/// and ORTE (Open MPI), Slurm, Flux. Slurm's number is that of the step: a batch script, which is
/// one process of an allocation for many, is in none.
const NAMES: [(&str, &str); 4] = [
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
];

/// How launchers name the place of a process among those of its host.
const LOCAL_NAMES: [&str; 4] =
    ["MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "FLUX_TASK_LOCAL_ID"];

/// Whether another process of this job on this host comes first, as far as its launcher says.
pub fn has_elder_here() -> bool {
    let local = LOCAL_NAMES.iter().find_map(|name| std::env::var(name).ok());
    local.and_then(|rank| rank.parse::<usize>().ok()).is_some_and(|rank| rank > 0)
}

impl Place {
    /// The place of this process; `None` where no launcher has started it.
    pub fn of_this_process() -> Option<Self> {
        Self::told_by(|name| std::env::var(name).ok())
    }

    fn told_by(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name)?.parse().ok();
        NAMES.iter().find_map(|(rank, procs)| {
            let place = Self { rank: number(rank)?, procs: number(procs)? };
            (place.rank < place.procs).then_some(place)
        })
    }
}

/// Tells machines apart: containers of one machine are on the same.
pub fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launcher_is_understood_and_nonsense_is_none() {
        let told = |text: &'static str| {
            Place::told_by(move |name| {
                text.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
            })
        };
        let second = Some(Place { rank: 1, procs: 4 });
        for text in [
            "PMI_RANK=1 PMI_SIZE=4",
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4",
            "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4",
            "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4",
            "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 PMI_RANK=1 PMI_SIZE=4",
        ] {
            assert_eq!(told(text), second, "{text}");
        }
        for text in [
            "",
            "PMI_RANK=1",
            "SLURM_PROCID=0 SLURM_NTASKS=4",
            "PMI_RANK=4 PMI_SIZE=4",
            "PMI_RANK=-1 PMI_SIZE=4",
            "PMI_RANK=a PMI_SIZE=b",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
