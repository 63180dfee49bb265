//! Waits for workers to connect to the rendezvous ([`Rendezvous`]). A launcher or the processes of a job start them.

use crate::hosts::secret;
use crate::launch::end::{End, LOOK};
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_job::rendezvous::{Arrival, Rendezvous};
use std::time::{Duration, Instant};

/// Timeout for all workers to connect. It is long, because a launcher must reach other hosts first.
const COMING: Duration = Duration::from_secs(60);

/// Returns the number of each text, from 0, in the order of their first appearance.
pub fn numbered<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut seen: Vec<&str> = Vec::new();
    let mut number = |text| {
        seen.iter().position(|other| *other == text).unwrap_or_else(|| {
            seen.push(text);
            seen.len() - 1
        })
    };
    texts.map(&mut number).collect()
}

/// The end of a wait for workers that have not all come.
pub struct Incomplete {
    pub end: End,
    /// Those that have come.
    pub guests: Vec<Arrival>,
}

impl From<Incomplete> for End {
    fn from(incomplete: Incomplete) -> Self {
        incomplete.end
    }
}

/// Waits for `procs` workers and returns them by rank; workers without a rank by machine, in the order of their
/// arrival. `look` is called whenever no worker arrives for a while, and its error ends the wait.
pub fn gather(
    rendezvous: &Rendezvous,
    procs: usize,
    interrupt: &Interrupt,
    look: &mut dyn FnMut() -> Result<(), End>,
) -> Result<Vec<Arrival>, Incomplete> {
    let mut guests = Vec::new();
    match fill(&mut guests, rendezvous, procs, interrupt, look) {
        Ok(()) => {
            guests.sort_by_cached_key(|guest| {
                (guest.place.map_or(0, |place| place.rank), guest.machine.clone())
            });
            Ok(guests)
        }
        Err(end) => Err(Incomplete { end, guests }),
    }
}

fn fill(
    guests: &mut Vec<Arrival>,
    rendezvous: &Rendezvous,
    procs: usize,
    interrupt: &Interrupt,
    look: &mut dyn FnMut() -> Result<(), End>,
) -> Result<(), End> {
    let until = Instant::now() + COMING;
    while guests.len() < procs {
        interrupt.check().map_err(End::Fault)?;
        match rendezvous.next(LOOK) {
            Some(Arrival { place: Some(place), .. }) if place.procs != procs => {
                return Err(End::Fault(Fault::BadInput(format!(
                    "{} processes were started, and {procs} are wanted: say -n {{n}} to --launcher",
                    place.procs
                ))));
            }
            Some(guest) => guests.push(guest),
            None => look()?,
        }
        if Instant::now() > until {
            let ip = rendezvous.address().ip();
            let at = if ip.is_unspecified() { "there".to_owned() } else { ip.to_string() };
            return Err(End::Failed(format!(
                "of {procs} processes {} came within {COMING:?}: is {at} an address that all hosts reach \
                 (--bind), and is {} passed on by what starts them?",
                guests.len(),
                secret::VARIABLE
            )));
        }
    }
    Ok(())
}
