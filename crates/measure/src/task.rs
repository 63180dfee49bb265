//! Objects on which the tasks of the verbs run.

use crate::breakdown;
use crate::bulk;
use crate::bulk::data::BulkLaunch;
use crate::completion;
use crate::completion::data::CompletionLaunch;
use crate::layer::{
    Dissected, Initiator, LayerError, Messenger, Meter, Registrar, Requester, SizedRequester,
};
use crate::logp::data::LaunchData;
use crate::logp::pattern;
use crate::memory;
use crate::memory::data::MemoryLaunch;
use crate::onesided;
use crate::onesided::data::OnesidedLaunch;
use crate::overlap;
use crate::overlap::data::OverlapLaunch;
use crate::registration;
use crate::utilisation;
use crate::utilisation::data::UtilisationLaunch;
pub use crate::verbs::{Data, Task};

/// An object on which a task can run, whatever its type. The patterns are compiled for each requester, so
/// that no timed call is a virtual call.
pub trait Subject {
    /// Runs one launch. `progress` receives the share that is done.
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError>;

    /// Reads the processor time of both sides by `meter` from now on.
    ///
    /// # Errors
    /// Returns an error if no task of the object needs that.
    fn set_meter(&mut self, _meter: Box<dyn Meter>) -> Result<(), LayerError> {
        Err(LayerError::new("the layer was not opened for requests of any size"))
    }
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
            Task::Completion(plan) => {
                let data = completion::pattern::run(&mut self.0, plan, progress)?;
                Ok(Data::Completion(CompletionLaunch { transport: self.0.transport(), ..data }))
            }
            Task::Utilisation(plan) => {
                let data = utilisation::pattern::run(&mut self.0, plan, progress)?;
                Ok(Data::Utilisation(UtilisationLaunch { transport: self.0.transport(), ..data }))
            }
            other => self.0.measure(other, progress),
        }
    }

    fn set_meter(&mut self, meter: Box<dyn Meter>) -> Result<(), LayerError> {
        self.0.set_meter(meter);
        Ok(())
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

/// A layer whose operations are to be broken down.
#[derive(Debug)]
pub struct Parts<L>(pub L);

impl<L: Dissected> Subject for Parts<L> {
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError> {
        match task {
            Task::Breakdown(plan) => {
                breakdown::pattern::run(&mut self.0, plan, progress).map(Data::Breakdown)
            }
            other => Err(LayerError(format!("the layer was not opened for {other:?}"))),
        }
    }
}

/// An initiator whose one-sided operations are to be measured.
#[derive(Debug)]
pub struct OneSided<I>(pub I);

impl<I: Initiator> Subject for OneSided<I> {
    fn measure(&mut self, task: &Task, progress: &mut dyn FnMut(f64)) -> Result<Data, LayerError> {
        match task {
            Task::Onesided(plan) => {
                let data = onesided::pattern::run(&mut self.0, plan, progress)?;
                Ok(Data::Onesided(OnesidedLaunch { transport: self.0.transport(), ..data }))
            }
            Task::Memory(plan) => {
                let MemoryLaunch(data) = memory::pattern::run(&mut self.0, plan, progress)?;
                Ok(Data::Memory(MemoryLaunch(OnesidedLaunch { transport: self.0.transport(), ..data })))
            }
            other => Err(LayerError(format!("the layer was not opened for {other:?}"))),
        }
    }
}
