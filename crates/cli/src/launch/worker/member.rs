//! One worker of many: it carries out the orders of each step, until the launching side closes the control
//! connection.

use crate::launch::orders::{Answer, CrowdAnswer, CrowdOrder, Opening, Order};
use crate::launch::worker::setup::{End, TIMEOUT, bound, pin, preemptions, unexpected};
use netdyno_host::wait::Wait;
use netdyno_job::member::{Control, MemberError};
use netdyno_layers::catalogue::Layer;
use netdyno_layers::catalogue::group;
use netdyno_layers::group::{Attendant, Place};
use netdyno_layers::options::LayerOptions;
use netdyno_measure::contention::cues::Cues;
use netdyno_measure::contention::step::{Counted, Cue};
use netdyno_measure::layer::{Face, LayerError};
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_protocol::faults::Faults;
use std::sync::atomic::Ordering;

/// Connects to the other workers, and then carries out the orders.
pub fn work(control: &mut Control<Order>, first: CrowdOrder) -> Result<(), End> {
    let CrowdOrder::Gather(opening) = first else { return Err(unexpected(&Order::Crowd(first))) };
    let wait: Wait = opening.wait.parse().map_err(End::Layer)?;
    let mut attendant = take_place(control, *opening, wait)?;
    loop {
        let order = match control.receive(TIMEOUT) {
            Ok(Order::Crowd(order)) => order,
            Ok(other) => return Err(unexpected(&other)),
            // The launching side has no more steps.
            Err(MemberError::Over) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let before = preemptions(wait);
        match order {
            CrowdOrder::Perform(assignment) => attendant.perform(&assignment, &mut Ears { control })?,
            CrowdOrder::Serve(requesters) => attendant.serve(&requesters, &mut Ears { control })?,
            other => return Err(unexpected(&Order::Crowd(other))),
        }
        let lost = preemptions(wait).zip(before).map(|(after, before)| after - before);
        say(control, CrowdAnswer::Done(lost))?;
    }
}

fn take_place(control: &mut Control<Order>, opening: Opening, wait: Wait) -> Result<Box<dyn Attendant>, End> {
    let Opening { layer, rank, procs, size_bytes, faults, dials, bind, seed, cpu, .. } = opening;
    let layer: Layer = layer.parse().map_err(End::Layer)?;
    let faults = faults.map_or(Ok(Faults::NONE), |faults| faults.parse());
    let faults = faults.map_err(|error| End::Layer(error.to_string()))?;
    let dials = dials.read().map_err(End::Layer)?;
    pin(cpu)?;
    if procs < 2 || rank >= procs {
        return Err(End::Layer(format!("there is no place {rank} among {procs}")));
    }
    let bind = bound(bind, control);
    let options = LayerOptions {
        size_bytes,
        face: Face::Requests,
        access: Access::default(),
        progress_by: ProgressBy::default(),
        wait,
        faults,
        dials,
        seed,
        bind,
    };
    let gathering = group::open(layer, Place { rank, procs }, options)?;
    let (addresses, shared) = (gathering.addresses(), control.shared_files());
    say(control, CrowdAnswer::Gathered { addresses, shared })?;
    let addresses = match control.receive(TIMEOUT)? {
        Order::Crowd(CrowdOrder::Meet(addresses)) if addresses.len() == procs => addresses,
        other => return Err(unexpected(&other)),
    };
    let attendant = gathering.meet(&addresses)?;
    say(control, CrowdAnswer::Met)?;
    Ok(attendant)
}

fn say(control: &mut Control<Order>, answer: CrowdAnswer) -> Result<(), End> {
    Ok(control.send(&Answer::Crowd(answer))?)
}

/// Reads cues from the control connection. A separate thread, which sleeps in the kernel, receives them.
struct Ears<'a> {
    control: &'a mut Control<Order>,
}

impl Ears<'_> {
    fn say(&mut self, answer: CrowdAnswer) -> Result<(), LayerError> {
        self.control.send(&Answer::Crowd(answer)).map_err(LayerError::new)
    }
}

impl Cues for Ears<'_> {
    fn look(&mut self) -> Result<Option<Cue>, LayerError> {
        match self.control.try_receive() {
            // The launching side is gone, so the results are no longer needed.
            None if self.control.over().load(Ordering::Relaxed) => Ok(Some(Cue::Stop)),
            None => Ok(None),
            Some(Order::Crowd(CrowdOrder::Cue(cue))) => Ok(Some(cue)),
            Some(other) => Err(LayerError(format!("the order {other:?} came out of turn"))),
        }
    }

    fn is_warm(&mut self) -> Result<(), LayerError> {
        self.say(CrowdAnswer::Warm)
    }

    fn has_counted(&mut self, counted: Counted) -> Result<(), LayerError> {
        self.say(CrowdAnswer::Counted(counted))
    }
}
