//! The environments in which the two sides of a layer are connected.

use netdyno_host::wait::Wait;
use netdyno_layers::accounts::with_accounts;
use netdyno_layers::catalogue::{Layer, group, half};
use netdyno_layers::group::{Attendant, Place};
use netdyno_layers::half::{Half, Role};
use netdyno_layers::options::{DialOptions, LayerOptions};
use netdyno_layers::sim::{self, SimMessenger};
use netdyno_measure::contention::cues::Cues;
use netdyno_measure::contention::step::{Activity, Assignment, Counted, Cue};
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::task::{Data, Task};
use netdyno_protocol::faults::Faults;
use netdyno_protocol::sim::Truth;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// The time within which a side must end after the request to end.
const SOON: Duration = Duration::from_secs(20);
const TRUTH: &str = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B,o_poll=20ns";

/// An environment that connects the two sides of a layer. If this process is the side that serves, nothing is
/// returned, and `work` is not called.
pub trait Ground {
    fn layer(&self) -> Layer;

    /// Runs the task on the side that measures, and returns its data.
    fn measure(&self, options: LayerOptions, task: &Task) -> Option<Data>;

    /// Runs `work` on the worker's side of a layer with messages.
    fn exchange(&self, options: LayerOptions, work: &mut dyn FnMut(&mut dyn Messenger));

    /// Opens the layer for a group of two processes. The first streams to the second, and returns its counts.
    fn stream(&self, options: LayerOptions) -> Option<Counted>;

    /// Returns the error with which the layer refuses the options.
    fn refusal(&self, options: LayerOptions) -> String {
        let refused = half::open(self.layer(), Role::Requester, options.clone());
        refused.err().unwrap_or_else(|| panic!("{}: {options:?} was not refused", self.layer())).0
    }
}

/// Returns the options for messages of up to `size_bytes`. Waiting yields, because there may be more
/// processes than processors.
pub fn options(size_bytes: usize, face: Face) -> LayerOptions {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    LayerOptions {
        size_bytes,
        face,
        access: Access::default(),
        progress_by: ProgressBy::default(),
        wait: Wait::Yield,
        faults: Faults::NONE,
        dials: DialOptions::default(),
        seed: 1,
        bind,
    }
}

/// Opens a half for a task: with accounts of processor time if the task reads them.
pub fn half_for(task: Option<&Task>, layer: Layer, role: Role, options: LayerOptions) -> Box<dyn Half> {
    let ip = options.bind.ip();
    let half = half::open(layer, role, options).unwrap();
    match task {
        Some(Task::Utilisation(_)) => with_accounts(half, role, ip).unwrap(),
        _ => half,
    }
}

/// Two threads of this process, one for each side.
pub struct Threads(pub Layer);

impl Threads {
    /// Runs `work` with one side, as `connect` makes it, while the other side serves. Then tells the other
    /// side to end, which it must do within [`SOON`].
    fn between<W>(
        &self,
        task: Option<&Task>,
        options: LayerOptions,
        connect: impl FnOnce(Box<dyn Half>, &[u8]) -> Result<W, LayerError>,
        work: impl FnOnce(&mut W),
    ) {
        let layer = self.0;
        let (to_replier, at_replier) = mpsc::channel::<Vec<u8>>();
        let (to_requester, at_requester) = mpsc::channel();
        let (say_end, end) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let are_connected = Arc::new(Barrier::new(2));
        let (is_over, is_connected) = (Arc::clone(&over), Arc::clone(&are_connected));
        let (same, of_replier) = (options.clone(), task.cloned());
        thread::spawn(move || {
            let half = half_for(of_replier.as_ref(), layer, Role::Replier, same);
            to_requester.send(half.address()).unwrap();
            let mut replier = half.replier(&at_replier.recv().unwrap()).unwrap();
            is_connected.wait();
            let served = replier.serve(&is_over);
            say_end.send(served.map_err(|error| error.0)).unwrap();
        });
        let half = half_for(task, layer, Role::Requester, options);
        to_replier.send(half.address()).unwrap();
        let mut side = connect(half, &at_requester.recv().unwrap()).unwrap();
        are_connected.wait();
        work(&mut side);
        over.store(true, Ordering::Relaxed);
        assert_eq!(end.recv_timeout(SOON), Ok(Ok(())), "{layer}: it was told to end");
    }
}

impl Ground for Threads {
    fn layer(&self) -> Layer {
        self.0
    }

    fn measure(&self, options: LayerOptions, task: &Task) -> Option<Data> {
        let mut measured = None;
        let connect = |half: Box<dyn Half>, address: &[u8]| half.requester(address);
        self.between(Some(task), options, connect, |subject| {
            measured = Some(subject.measure(task, &mut |_| {}).unwrap());
        });
        measured
    }

    fn exchange(&self, options: LayerOptions, work: &mut dyn FnMut(&mut dyn Messenger)) {
        let connect = |half: Box<dyn Half>, address: &[u8]| half.messenger(address);
        self.between(None, options, connect, |worker| work(&mut **worker));
    }

    fn stream(&self, options: LayerOptions) -> Option<Counted> {
        let layer = self.0;
        let (to_other, from_first) = mpsc::channel::<Vec<u8>>();
        let (to_first, from_other) = mpsc::channel();
        let (stop, told) = mpsc::channel();
        let same = options.clone();
        let other = thread::spawn(move || {
            let gathering = group::open(layer, Place { rank: 1, procs: 2 }, same).unwrap();
            to_first.send(gathering.addresses()[0].clone()).unwrap();
            let mut attendant = gathering.meet(&[from_first.recv().unwrap(), Vec::new()]).unwrap();
            attendant.serve(&[0], &mut Told(told)).unwrap();
        });
        let gathering = group::open(layer, Place { rank: 0, procs: 2 }, options).unwrap();
        to_other.send(gathering.addresses()[1].clone()).unwrap();
        let mut attendant = gathering.meet(&[Vec::new(), from_other.recv().unwrap()]).unwrap();
        let counted = perform(&mut *attendant);
        stop.send(Cue::Stop).unwrap();
        other.join().unwrap();
        Some(counted)
    }
}

/// Streams to the other process twice. Returns the counts of the second stream.
pub fn perform(attendant: &mut dyn Attendant) -> Counted {
    let assignment = Assignment {
        peers: vec![1],
        activity: Activity::Stream { delay_ns: 0.0 },
        window: 16,
        rest_ns: 0.0,
        count_ns: 1e7,
        enough: None,
    };
    let mut counted = || {
        let mut cues = Alone::default();
        attendant.perform(&assignment, &mut cues).unwrap();
        cues.counted.unwrap()
    };
    counted();
    counted()
}

/// The cues of a step with one requester: it counts when it is warm, and stops when it has counted.
#[derive(Default)]
struct Alone {
    next: Option<Cue>,
    counted: Option<Counted>,
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

/// The cues that another thread sends.
pub struct Told(pub Receiver<Cue>);

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

/// A simulated interface, which contains both sides.
pub struct Simulated;

impl Simulated {
    fn truth() -> Truth {
        TRUTH.parse().unwrap()
    }
}

impl Ground for Simulated {
    fn layer(&self) -> Layer {
        Layer::Sim
    }

    fn measure(&self, options: LayerOptions, task: &Task) -> Option<Data> {
        Some(sim::launch(Self::truth(), options.size_bytes, task, &mut |_| {}).unwrap())
    }

    fn exchange(&self, options: LayerOptions, work: &mut dyn FnMut(&mut dyn Messenger)) {
        work(&mut SimMessenger::new(Self::truth(), options.seed));
    }

    fn stream(&self, _: LayerOptions) -> Option<Counted> {
        unreachable!("it has no processes")
    }
}
