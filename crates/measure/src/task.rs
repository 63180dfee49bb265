//! The task of one launch and its result, for every verb.

use crate::bulk;
use crate::bulk::data::BulkLaunch;
use crate::bulk::pattern::BulkPlan;
use crate::contention::data::CrowdData;
use crate::contention::direct::CrowdPlan;
use crate::layer::{Face, LayerError, Messenger, Registrar, Requester, SizedRequester};
use crate::logp::data::LaunchData;
use crate::logp::pattern::{self, Plan};
use crate::overlap;
use crate::overlap::data::OverlapLaunch;
use crate::overlap::plan::OverlapPlan;
use crate::registration;
use crate::registration::data::RegistrationLaunch;
use crate::registration::pattern::RegistrationPlan;
use crate::validation::{Dialled, Planned};
use serde::{Deserialize, Serialize};

/// The task of one launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// The LogP signature.
    Logp(Plan),
    /// Messages of every size.
    Bulk(BulkPlan),
    /// The steps that show the effect of contention.
    Contention(CrowdPlan),
    /// Computation behind messages.
    Overlap(OverlapPlan),
    /// The cost of registering memory.
    Registration(RegistrationPlan),
    /// Repeated signatures, with a dial set between them.
    Dialled(Planned),
}

impl Task {
    /// Returns the index in the order of launches.
    pub fn launch(&self) -> usize {
        match self {
            Self::Logp(plan) => plan.launch,
            Self::Bulk(plan) => plan.launch,
            Self::Contention(plan) => plan.launch,
            Self::Overlap(plan) => plan.launch,
            Self::Registration(plan) => plan.launch,
            Self::Dialled(planned) => planned.plan.launch,
        }
    }

    /// Returns the interface that two processes use for the task. Returns `None` if one process performs it
    /// alone.
    pub fn face(&self) -> Option<Face> {
        match self {
            Self::Logp(_) | Self::Contention(_) | Self::Dialled(_) => Some(Face::Requests),
            Self::Bulk(_) => Some(Face::Sized),
            Self::Overlap(_) => Some(Face::Messages),
            Self::Registration(_) => None,
        }
    }

    /// Returns the seed of the task's random choices.
    pub fn seed(&self) -> u64 {
        match self {
            Self::Logp(plan) => plan.seed,
            Self::Bulk(plan) => plan.seed,
            Self::Contention(plan) => plan.seed,
            Self::Overlap(plan) => plan.seed,
            Self::Registration(plan) => plan.seed,
            Self::Dialled(planned) => planned.plan.seed,
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
    /// The LogP signature.
    Logp(LaunchData),
    /// Messages of every size.
    Bulk(BulkLaunch),
    /// Contention.
    Contention(CrowdData),
    /// Computation behind messages.
    Overlap(OverlapLaunch),
    /// The costs of registration.
    Registration(RegistrationLaunch),
    /// The effects of dials.
    Dialled(Dialled),
}

impl Data {
    /// Stores the number of preemptions of the measuring process.
    pub fn set_preemptions(&mut self, preemptions: Option<u64>) {
        match self {
            Self::Logp(data) => data.preemptions = preemptions,
            Self::Bulk(data) => data.preemptions = preemptions,
            Self::Contention(data) => data.preemptions = preemptions,
            Self::Overlap(data) => data.preemptions = preemptions,
            Self::Registration(data) => data.preemptions = preemptions,
            Self::Dialled(data) => data.preemptions = preemptions,
        }
    }
}

/// An object on which a task can run, whatever its type. The patterns are compiled for each requester, so
/// that no timed call is a virtual call.
pub trait Subject {
    /// Runs one launch. `progress` receives the share that is done.
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError>;
}

impl<R: Requester> Subject for R {
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError> {
        match task {
            Task::Logp(plan) => {
                let data = pattern::run(self, plan, progress)?;
                Ok(Data::Logp(LaunchData { transport: self.transport(), ..data }))
            }
            other => Err(LayerError(format!("the layer was not opened for {other:?}"))),
        }
    }
}

/// A requester to be measured at every size.
#[derive(Debug)]
pub struct AnySize<R>(pub R);

impl<R: SizedRequester> Subject for AnySize<R> {
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError> {
        match task {
            Task::Bulk(plan) => {
                let data = bulk::pattern::run(&mut self.0, plan, progress)?;
                Ok(Data::Bulk(BulkLaunch { transport: self.0.transport(), ..data }))
            }
            other => self.0.measure(other, progress),
        }
    }
}

/// A worker whose messages are to be measured.
#[derive(Debug)]
pub struct Messages<M>(pub M);

impl<M: Messenger> Subject for Messages<M> {
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError> {
        match task {
            Task::Overlap(plan) => {
                let data = overlap::pattern::run(&mut self.0, plan, progress)?;
                Ok(Data::Overlap(OverlapLaunch { transport: self.0.transport(), ..data }))
            }
            other => Err(LayerError(format!("the layer was not opened for {other:?}"))),
        }
    }
}

/// A process whose registrations are to be measured.
#[derive(Debug)]
pub struct Memory<R>(pub R);

impl<R: Registrar> Subject for Memory<R> {
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError> {
        match task {
            Task::Registration(plan) => {
                registration::pattern::run(&mut self.0, plan, progress).map(Data::Registration)
            }
            other => Err(LayerError(format!("the layer was not opened for {other:?}"))),
        }
    }
}
