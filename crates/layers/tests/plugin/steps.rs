//! Many processes, two of them: one streams to another that answers.

use crate::{options, skeleton};
use netdyno_host::wait::Wait;
use netdyno_layers::group::{Attendant, Gathering, Place};
use netdyno_layers::plugin::{Extension, PluginGathering};
use netdyno_measure::contention::member::Cues;
use netdyno_measure::contention::step::{Activity, Assignment, Counted, Cue};
use netdyno_measure::layer::{Face, LayerError};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// One's own step: begin, count, stop.
#[derive(Default)]
pub struct Alone {
    next: Option<Cue>,
    pub counted: Option<Counted>,
}

impl Cues for Alone {
    fn look(&mut self) -> Result<Option<Cue>, LayerError> {
        Ok(self.next.take())
    }

    fn is_warm(&mut self) -> Result<(), LayerError> {
        self.next = Some(Cue::Count);
        Ok(())
    }

    fn has_counted(&mut self, counted: Counted) -> Result<(), LayerError> {
        self.counted = Some(counted);
        self.next = Some(Cue::Stop);
        Ok(())
    }
}

/// Told to stop by another thread.
struct Told(Receiver<Cue>);

impl Cues for Told {
    fn look(&mut self) -> Result<Option<Cue>, LayerError> {
        Ok(self.0.try_recv().ok())
    }

    fn is_warm(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    fn has_counted(&mut self, _: Counted) -> Result<(), LayerError> {
        Ok(())
    }
}

pub fn stream_to(peer: usize) -> Assignment {
    Assignment {
        peers: vec![peer],
        activity: Activity::Stream { delay_ns: 0.0 },
        window: 16,
        rest_ns: 0.0,
        count_ns: 1e7,
        enough: None,
    }
}

fn gathered(extension: &Extension, rank: usize) -> Box<dyn Gathering> {
    let options = options(100, Face::Requests, Wait::Yield);
    Box::new(PluginGathering::open(extension, Place { rank, procs: 2 }, options).unwrap())
}

#[test]
fn the_skeleton_takes_part_in_a_crowd() {
    let folder = tempfile::tempdir().unwrap();
    let extension = skeleton(folder.path());
    let (addresses_out, addresses_in) = channel();
    let (back_out, back_in) = channel();
    let (stop, told) = channel();
    let requester = gathered(&extension, 0);
    addresses_out.send(requester.addresses()).unwrap();
    let replier = thread::spawn(move || {
        let replier = gathered(&extension, 1);
        let own = replier.addresses();
        let theirs: Vec<Vec<u8>> = addresses_in.recv().unwrap();
        back_out.send(own[0].clone()).unwrap();
        let mut attendant = replier.meet(&[theirs[1].clone(), Vec::new()]).unwrap();
        attendant.serve(&[0], &mut Told(told)).unwrap();
    });
    let mut attendant: Box<dyn Attendant> = requester.meet(&[Vec::new(), back_in.recv().unwrap()]).unwrap();
    for _ in 0..2 {
        let mut cues = Alone::default();
        attendant.perform(&stream_to(1), &mut cues).unwrap();
        let counted = cues.counted.unwrap();
        assert!(counted.times.iter().any(|timed| timed.ns > 0.0), "{counted:?}");
    }
    stop.send(Cue::Stop).unwrap();
    replier.join().unwrap();
}
