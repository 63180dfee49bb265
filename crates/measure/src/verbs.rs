//! The registry of the measuring verbs: the plan, the data and the record of each.
//!
//! A new verb is a module with these types and one entry in the list below.

use crate::breakdown;
use crate::breakdown::data::BreakdownLaunch;
use crate::breakdown::pattern::BreakdownPlan;
use crate::breakdown::record::Breakdown;
use crate::bulk;
use crate::bulk::data::BulkLaunch;
use crate::bulk::pattern::BulkPlan;
use crate::bulk::record::Bulk;
use crate::completion;
use crate::completion::data::CompletionLaunch;
use crate::completion::pattern::CompletionPlan;
use crate::completion::record::Completion;
use crate::contention;
use crate::contention::data::CrowdData;
use crate::contention::direct::CrowdPlan;
use crate::contention::record::Contention;
use crate::layer::Face;
use crate::logp;
use crate::logp::data::LaunchData;
use crate::logp::pattern::Plan;
use crate::logp::record::Logp;
use crate::memory;
use crate::memory::data::MemoryLaunch;
use crate::memory::pattern::MemoryPlan;
use crate::memory::record::RemoteMemory;
use crate::onesided;
use crate::onesided::data::OnesidedLaunch;
use crate::onesided::pattern::OnesidedPlan;
use crate::onesided::record::Onesided;
use crate::overlap;
use crate::overlap::data::OverlapLaunch;
use crate::overlap::plan::OverlapPlan;
use crate::overlap::record::Overlap;
use crate::precision::Wanted;
use crate::reading::Findings;
use crate::record::parameter::Parameters;
use crate::registration;
use crate::registration::data::RegistrationLaunch;
use crate::registration::pattern::RegistrationPlan;
use crate::registration::record::Registration;
use crate::utilisation;
use crate::utilisation::data::UtilisationLaunch;
use crate::utilisation::pattern::UtilisationPlan;
use crate::utilisation::record::Utilisation;
use crate::validation;
use crate::validation::record::Validation;
use crate::validation::{Dialled, DialledPlan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines [`Task`], [`Data`] and [`Found`] with one variant for each verb.
macro_rules! verbs {
    ($(
        $(#[$doc:meta])*
        $verb:ident {
            name: $name:literal,
            plan: $plan:ty,
            face: $face:expr,
            data: $data:ty,
            record: $record:ty => $accessor:ident,
            wanted: $wanted:path,
        }
    )*) => {
        /// The task of one launch.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub enum Task {
            $($(#[$doc])* $verb($plan),)*
        }

        impl Task {
            /// Returns the index in the order of launches.
            pub fn launch(&self) -> usize {
                match self {
                    $(Self::$verb(plan) => plan.launch,)*
                }
            }

            /// Returns the interface that two processes use for the task. Returns `None` if one process
            /// performs it alone.
            pub fn face(&self) -> Option<Face> {
                match self {
                    $(Self::$verb(_) => $face,)*
                }
            }

            /// Returns the verb, as on the command line.
            pub fn verb(&self) -> &'static str {
                match self {
                    $(Self::$verb(_) => $name,)*
                }
            }

            /// Returns the seed of the task's random choices.
            pub fn seed(&self) -> u64 {
                match self {
                    $(Self::$verb(plan) => plan.seed,)*
                }
            }
        }

        /// The measurements of one launch.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[allow(
            clippy::large_enum_variant,
            reason = "one for each launch, which takes a second, so that the size does not matter"
        )]
        pub enum Data {
            $($(#[$doc])* $verb($data),)*
        }

        impl Data {
            /// Stores the number of preemptions of the measuring process.
            pub fn set_preemptions(&mut self, preemptions: Option<u64>) {
                match self {
                    $(Self::$verb(data) => data.preemptions = preemptions,)*
                }
            }
        }

        /// The findings of a verb beside the parameters, with the data of the launches.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "verb")]
        #[allow(
            clippy::large_enum_variant,
            reason = "one for each layer of a run, so that the size does not matter"
        )]
        pub enum Found {
            $($(#[$doc])* #[serde(rename = $name)] $verb($record),)*
        }

        impl Found {
            /// Returns the verb, as on the command line.
            pub fn verb(&self) -> &'static str {
                match self {
                    $(Self::$verb(_) => $name,)*
                }
            }

            /// Returns the number of launches behind the findings.
            pub fn launches(&self) -> usize {
                match self {
                    $(Self::$verb(found) => found.launches.len(),)*
                }
            }

            /// Keeps the data of the launches whose index in the order of launches satisfies `keep`.
            pub fn retain_launches(&mut self, mut keep: impl FnMut(usize) -> bool) {
                match self {
                    $(Self::$verb(found) => found.launches.retain(|data| keep(data.launch)),)*
                }
            }

            $(
                #[doc = concat!("Returns the findings of `", $name, "`, if that was the verb.")]
                pub fn $accessor(&self) -> Option<&$record> {
                    match self {
                        Self::$verb(found) => Some(found),
                        _ => None,
                    }
                }
            )*
        }

        impl Findings for Found {
            fn are_precise(&self, parameters: &Parameters, precision: f64) -> bool {
                match self {
                    $(Self::$verb(found) => found.are_precise(parameters, precision),)*
                }
            }
        }

        $(
            impl Findings for $record {
                fn are_precise(&self, parameters: &Parameters, precision: f64) -> bool {
                    $wanted(parameters, self, precision).iter().all(Wanted::is_met)
                }
            }

            impl OfVerb for $data {
                fn of(data: &Data) -> Option<&Self> {
                    match data {
                        Data::$verb(data) => Some(data),
                        _ => None,
                    }
                }
            }

            impl From<$record> for Found {
                fn from(found: $record) -> Self {
                    Self::$verb(found)
                }
            }
        )*
    };
}

verbs! {
    /// The LogP signature.
    Logp {
        name: "logp",
        plan: Plan,
        face: Some(Face::Requests),
        data: LaunchData,
        record: Logp => logp,
        wanted: logp::doubts::wanted,
    }
    /// Messages of every size.
    Bulk {
        name: "bulk",
        plan: BulkPlan,
        face: Some(Face::Sized),
        data: BulkLaunch,
        record: Bulk => bulk,
        wanted: bulk::doubts::wanted,
    }
    /// Latency and bandwidth by size, by the way to wait.
    Completion {
        name: "completion",
        plan: CompletionPlan,
        face: Some(Face::Sized),
        data: CompletionLaunch,
        record: Completion => completion,
        wanted: completion::doubts::wanted,
    }
    /// The effects of contention on one pair.
    Contention {
        name: "contention",
        plan: CrowdPlan,
        face: Some(Face::Requests),
        data: CrowdData,
        record: Contention => contention,
        wanted: contention::doubts::wanted,
    }
    /// Computation behind messages.
    Overlap {
        name: "overlap",
        plan: OverlapPlan,
        face: Some(Face::Messages),
        data: OverlapLaunch,
        record: Overlap => overlap,
        wanted: overlap::doubts::wanted,
    }
    /// One-sided operations of every size.
    Onesided {
        name: "onesided",
        plan: OnesidedPlan,
        face: Some(Face::OneSided),
        data: OnesidedLaunch,
        record: Onesided => onesided,
        wanted: onesided::doubts::wanted,
    }
    /// Accesses to remote memory, blocking and pipelined.
    Memory {
        name: "memory",
        plan: MemoryPlan,
        face: Some(Face::OneSided),
        data: MemoryLaunch,
        record: RemoteMemory => memory,
        wanted: memory::doubts::wanted,
    }
    /// The cost of registering memory of every size.
    Registration {
        name: "registration",
        plan: RegistrationPlan,
        face: None,
        data: RegistrationLaunch,
        record: Registration => registration,
        wanted: registration::doubts::wanted,
    }
    /// The steps of operations.
    Breakdown {
        name: "breakdown",
        plan: BreakdownPlan,
        face: None,
        data: BreakdownLaunch,
        record: Breakdown => breakdown,
        wanted: breakdown::doubts::wanted,
    }
    /// The processor time of messages on each side.
    Utilisation {
        name: "utilisation",
        plan: UtilisationPlan,
        face: Some(Face::Sized),
        data: UtilisationLaunch,
        record: Utilisation => utilisation,
        wanted: utilisation::doubts::wanted,
    }
    /// The effects of dials: repeated signatures, with a dial set between them.
    Validate {
        name: "validate",
        plan: DialledPlan,
        face: Some(Face::Requests),
        data: Dialled,
        record: Validation => validation,
        wanted: validation::extract::wanted,
    }
}

/// The data of a launch of one verb.
pub trait OfVerb: Clone {
    /// Returns the data if they are of this verb.
    fn of(data: &Data) -> Option<&Self>;
}

impl Data {
    /// Returns those launches whose data are of the verb of `D`.
    pub fn of_verb<D: OfVerb>(launches: &[Self]) -> Vec<D> {
        launches.iter().filter_map(D::of).cloned().collect()
    }

    /// Returns the first launch, if its data are of the verb of `D`.
    pub fn first<D: OfVerb>(launches: &[Self]) -> Option<&D> {
        launches.iter().find_map(D::of)
    }
}
