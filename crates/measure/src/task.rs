//! What a launch is asked to do, and what it brings back, whatever the verb.

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

/// What one launch is to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// The LogP signature.
    Logp(Plan),
    /// Messages of every size.
    Bulk(BulkPlan),
    /// The steps that show what contention does.
    Contention(CrowdPlan),
    /// Computation behind messages.
    Overlap(OverlapPlan),
    /// What it costs to have the layer know memory.
    Registration(RegistrationPlan),
    /// The signature again and again, with a dial turned in between.
    Dialled(Planned),
}

impl Task {
    /// Where in the order of launches it stands.
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

    /// What two processes share of a layer for it; none where one process does it alone.
    pub fn face(&self) -> Option<Face> {
        match self {
            Self::Logp(_) | Self::Contention(_) | Self::Dialled(_) => Some(Face::Requests),
            Self::Bulk(_) => Some(Face::Sized),
            Self::Overlap(_) => Some(Face::Messages),
            Self::Registration(_) => None,
        }
    }

    /// Seed of what is random in it.
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

/// What one launch measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant, reason = "one for each launch, which takes a second")]
pub enum Data {
    /// The LogP signature.
    Logp(LaunchData),
    /// Messages of every size.
    Bulk(BulkLaunch),
    /// What contention did.
    Contention(CrowdData),
    /// Computation behind messages.
    Overlap(OverlapLaunch),
    /// What registering cost.
    Registration(RegistrationLaunch),
    /// What dials did.
    Dialled(Dialled),
}

impl Data {
    /// Notes how often the system took the processor from the side that measured.
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

/// Anything that a task can be run on, whatever its type: the patterns themselves are
/// compiled for each requester, so that no call through a table is timed.
pub trait Subject {
    /// Runs one launch. `progress` is told the share that is done.
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

/// A requester that is to be measured at every size.
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

/// A process whose registering is to be measured.
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
