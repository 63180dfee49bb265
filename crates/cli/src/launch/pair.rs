//! One launch of a pair: requester and replier. A single process is enough if the layer needs no other one, or if
//! the replier is a server that runs already.

use crate::launch::bench::{Bench, Launched, REPLIER, REQUESTER};
use crate::launch::end::{AFTERMATH, End, Failure, LOOK, SILENCE};
use crate::launch::orders::{Answer, Order};
use crate::launch::origin::Origin;
use crate::launch::start::{self, Started};
use crate::terminal::interrupt::Interrupt;
use netdyno_job::workers::{Event, Workers};
use netdyno_layers::half::server_at;
use netdyno_measure::layer::Face;
use netdyno_measure::onesided::data::Access;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::task::Task;
use std::net::SocketAddr;
use std::time::Instant;

/// The processes of the launch: requester and replier, or the requester alone.
pub struct Pair<'a> {
    workers: Workers,
    /// Dropped after the connections to the workers.
    started: Started,
    interrupt: &'a Interrupt,
    procs: usize,
    verb: &'static str,
    /// The server that the requester connects to, if it runs already.
    server: Option<SocketAddr>,
}

impl<'a> Pair<'a> {
    /// Starts the processes.
    pub fn launch(bench: &Bench, task: &Task, interrupt: &'a Interrupt) -> Result<Self, End> {
        let server = bench.origin.server();
        let procs = if task.face().is_some() && server.is_none() { 2 } else { 1 };
        let mut workers = Workers::new();
        let started = start::workers(bench, procs, &mut workers, interrupt)?;
        Ok(Self { workers, started, interrupt, procs, verb: task.verb(), server })
    }

    /// Has the processes open the layer, connect and measure.
    pub fn measure(
        mut self,
        bench: &Bench,
        task: &Task,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Launched, End> {
        for rank in 0..self.procs {
            let order = match task.face() {
                Some(face) => open_order(bench, rank, task, face),
                None => alone_order(bench, task),
            };
            self.workers.send(rank, &order)?;
        }
        let measure = Order::Measure(Box::new(task.clone()));
        let (mut addresses, mut connected, mut library) = (vec![None; self.procs], 0, None);
        loop {
            match self.next()? {
                (rank, Answer::Opened { address, library: behind, shared }) => {
                    self.started.leftovers.note(shared);
                    addresses[rank] = Some(address);
                    library = library.or(behind);
                    match (&addresses[..], self.server) {
                        ([Some(_)], Some(server)) => {
                            self.workers.send(REQUESTER, &Order::Connect(server_at(server)))?;
                        }
                        // A single process has no peer to connect to.
                        ([Some(_)], None) => self.workers.send(REQUESTER, &measure)?,
                        ([Some(requester), Some(replier)], _) => {
                            self.workers.send(REQUESTER, &Order::Connect(replier.clone()))?;
                            self.workers.send(REPLIER, &Order::Connect(requester.clone()))?;
                        }
                        _ => {}
                    }
                }
                (_, Answer::Connected) => {
                    connected += 1;
                    if connected == self.procs {
                        self.workers.send(REQUESTER, &measure)?;
                    }
                }
                (REQUESTER, Answer::Progress(share)) => progress(share),
                // The replier serves until its control connection is closed.
                (REQUESTER, Answer::Measured(data)) => {
                    if bench.layer.is_of_library() {
                        self.workers.dismiss();
                    }
                    return Ok(Launched { data: *data, library, is_elsewhere: self.started.is_elsewhere });
                }
                (
                    rank,
                    Answer::Progress(_)
                    | Answer::Measured(_)
                    | Answer::Crowd(_)
                    | Answer::Tried
                    | Answer::Here(_)
                    | Answer::Environment(_),
                ) => {
                    let place = self.workers.place(rank);
                    return Err(End::Failed(format!(
                        "a process of a pair ({place}) answered as something else"
                    )));
                }
                (rank, Answer::Failed(text)) => return Err(self.aftermath(rank, Failure::Said(text))),
            }
        }
    }

    /// Waits for the next answer. The end of a process before that of the launch is a failure.
    fn next(&mut self) -> Result<(usize, Answer), End> {
        let silent_at = Instant::now() + SILENCE;
        loop {
            self.interrupt.check().map_err(End::Fault)?;
            match self.workers.next(LOOK)? {
                Some((rank, Event::Message(answer))) => return Ok((rank, answer)),
                Some((rank, Event::Ended(end))) => {
                    return Err(self.aftermath(rank, Failure::Ended(end.to_string())));
                }
                None if Instant::now() > silent_at => {
                    let place = self.workers.place(REQUESTER);
                    return Err(End::Failed(format!(
                        "the requester ({place}) has said nothing for {SILENCE:?}; stopped"
                    )));
                }
                None => {}
            }
        }
    }

    /// Describes the failure of a process, together with the other one's report if that arrives soon.
    fn aftermath(&mut self, rank: usize, failure: Failure) -> End {
        let (procs, is_alone) = (self.procs, self.procs == 1 && self.server.is_none());
        let name = |rank: usize| match rank {
            REQUESTER if is_alone => "process",
            REQUESTER => "requester",
            _ => "replier",
        };
        let mut lines = vec![format!("the {} ({}){failure}", name(rank), self.workers.place(rank))];
        let mut failures = vec![failure];
        let until = Instant::now() + AFTERMATH;
        while lines.len() < procs
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            let (other, failure) = match self.workers.next(left) {
                Ok(Some((other, Event::Message(Answer::Failed(text))))) => (other, Failure::Said(text)),
                Ok(Some((other, Event::Ended(end)))) if other != rank => {
                    (other, Failure::Ended(end.to_string()))
                }
                Ok(_) => continue,
                Err(_) => break,
            };
            if other != rank {
                lines.push(format!("the {} ({}){failure}", name(other), self.workers.place(other)));
                failures.push(failure);
            }
        }
        if let [one, other] = &failures[..]
            && one == other
        {
            lines = vec![format!("each process{one}")];
        }
        lines.extend(start::parting_words(self.started.job.as_mut()));
        let of_server = self.server.map(|server| format!("{} --connect {server}: ", self.verb));
        End::Failed(of_server.unwrap_or_default() + &lines.join("; "))
    }
}

fn alone_order(bench: &Bench, task: &Task) -> Order {
    let (layer, cpu) = (bench.layer.to_string(), bench.cpus.first().copied());
    match task {
        Task::Breakdown(_) => {
            let partner_cpu = bench.cpus.get(REPLIER).copied().filter(|partner| Some(*partner) != cpu);
            Order::Parts { layer, size_bytes: bench.size_bytes, cpu, partner_cpu }
        }
        _ => Order::Alone { layer, cpu },
    }
}

fn open_order(bench: &Bench, rank: usize, task: &Task, face: Face) -> Order {
    let size_bytes = match task {
        Task::Bulk(plan) => plan.memory_bytes().min(bench.layer.max_transfer()),
        Task::Completion(plan) => plan.largest_bytes.min(bench.layer.max_transfer()),
        Task::Utilisation(plan) => plan.largest_bytes.min(bench.layer.max_transfer()),
        Task::Overlap(plan) => plan.sizes.last().copied().unwrap_or(0).min(bench.layer.max_message()),
        Task::Onesided(plan) => plan.largest_bytes,
        Task::Memory(plan) => plan.largest_bytes,
        Task::Validate(planned) => planned.size_bytes,
        _ => bench.size_bytes,
    };
    let access = match task {
        Task::Onesided(plan) => plan.access,
        Task::Memory(plan) => plan.access,
        _ => Access::default(),
    };
    let is_requester = rank == REQUESTER;
    let progress_by = match task {
        // The support process only communicates.
        Task::Overlap(plan) if is_requester => plan.progress_by,
        _ => ProgressBy::default(),
    };
    let ip = match &bench.origin {
        Origin::Peer(peer) if !is_requester => peer.ip(),
        _ => bench.worker_ip(),
    };
    Order::Open {
        layer: bench.layer.to_string(),
        is_requester,
        size_bytes,
        face,
        access,
        progress_by,
        wait: bench.wait.to_string(),
        faults: bench.faults.map(|faults| faults.to_string()),
        dials: (&bench.dials).into(),
        bind: SocketAddr::new(ip, if is_requester { 0 } else { bench.bind.port() }),
        // The seeds differ, so that the injected faults of the two directions differ.
        seed: task.seed() ^ rank as u64,
        cpu: bench.cpus.get(rank).copied(),
        has_accounts: matches!(task, Task::Utilisation(_)),
        has_own_cpu: bench.processors >= bench.cpus.len(),
    }
}
