//! The functions of a job that the program calls: start, barrier, gathering, end.
//!
//! A rank sends all others what they need by messages of its own ([`CONTROL`]) between the endpoints of the job.

use crate::code::Code;
use crate::ending::end_now;
use crate::job::{
    BARRIER, Ended, GATHER, GATHERINGS_AHEAD, HELLO, JOB, Job, Meeting, ROUNDS, at_exit, fail, hear, job,
};
use crate::lobby;
use crate::name::Name;
use crate::objects::{Bundle, Endpoint};
use crate::polling;
use crate::refusal::{Refusal, failed, refuse, say};
use crate::settings;
use netdyno_host::machine;
use netdyno_job::launching::invitation::{Invitation, Joined, Loss};
use netdyno_job::place::Place;
use netdyno_job::pmi::{Pmi, PmiError};
use std::cell::{Cell, RefCell};
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Time in which the thread that watches the connection to the process that has started the job sees its end.
const WATCHED: Duration = Duration::from_secs(5);
/// Bytes of a piece of what a rank gives. It fits into a datagram.
const PIECE: usize = 1024;
/// Time of waiting for a rank after which it is asked whether it lives.
const ASK_AFTER: Duration = Duration::from_millis(500);
/// Vain polls of a rank that waits, for each look at the clock.
const POLLS_PER_CLOCK: u32 = 256;
/// The most ranks.
const MOST_RANKS: usize = 1 << ROUNDS;

/// Where this process is in its job.
struct Origin {
    place: Place,
    pmi: Option<Pmi>,
    /// The address at which the process that has started the job reaches this one.
    address: Option<Ipv4Addr>,
    /// The connection to that process.
    joined: Option<Joined>,
}

/// Asks the launcher that has started this process. Without a launcher the process is the only rank.
fn launched() -> Result<Origin, Refusal> {
    let place = Place::of_this_process().map_err(failed)?;
    let (place, pmi) = match place {
        None => (Place { rank: 0, procs: 1 }, None),
        Some(place) if !Pmi::is_offered() && place.procs > 1 => {
            return Err(failed(format!(
                "the launcher of rank {} offers no PMI version 1: start the program by mpiexec of MPICH, by \
                 srun --mpi=pmi2, or by netdyno launch",
                place.rank
            )));
        }
        Some(place) if !Pmi::is_offered() => (place, None),
        Some(place) => (place, Some(Pmi::open(place).map_err(failed)?)),
    };
    Ok(Origin { place, pmi, address: None, joined: None })
}

/// Connects to the process that has started the job, and ends with it.
fn invited(invitation: &str) -> Result<Origin, Refusal> {
    let invitation: Invitation = invitation.parse().map_err(failed)?;
    let (joined, place) = invitation.accept().map_err(failed)?;
    let lost = move |loss| {
        if loss == Loss::Gone {
            say(&format!(
                "rank {} of {}: the process that has started the job is gone",
                place.rank, place.procs
            ));
        }
        end_now(1);
    };
    joined.watch(lost).map_err(failed)?;
    let address = match joined.own_address() {
        Ok(IpAddr::V4(address)) => Some(address),
        _ => None,
    };
    let pmi = Pmi::over(joined.clone(), place).map_err(ends_with_job)?;
    Ok(Origin { place, pmi: Some(pmi), address, joined: Some(joined) })
}

/// Waits for the thread that watches the connection to the process that has started the job: it ends this process, and
/// knows why.
#[cold]
fn ends_with_job(error: PmiError) -> Refusal {
    thread::sleep(WATCHED);
    failed(error)
}

/// Starts the job. The process that has started this one has given it an invitation, or is a launcher that speaks PMI.
///
/// # Errors
/// Returns `Resource` with what is missing.
pub fn start(invitation: Option<&str>) -> Result<&'static Job, Refusal> {
    if job().is_some() {
        return Err(refuse(Code::Resource, "the job has started before"));
    }
    let mut origin = match invitation {
        Some(invitation) => invited(invitation)?,
        None => launched()?,
    };
    let begun = begin(&mut origin);
    // A launcher sees how this process ends. The process that has invited it must be told.
    if let (Err(_), Some(joined), Some(pmi)) = (&begun, origin.joined, origin.pmi) {
        // This process goes on, to say why.
        joined.unwatch();
        pmi.abort(1);
    }
    begun
}

/// Exchanges names with the other ranks, and connects to them.
fn begin(Origin { place, pmi, address, joined }: &mut Origin) -> Result<&'static Job, Refusal> {
    let (place, is_invited) = (*place, joined.is_some());
    if place.procs > MOST_RANKS {
        return Err(failed(format!(
            "a job has at most {MOST_RANKS} ranks, and this one has {}",
            place.procs
        )));
    }
    let mut gather = |mine: &[u8]| match pmi {
        Some(pmi) => pmi.gather(mine).map_err(|error| match is_invited {
            true => ends_with_job(error),
            false => failed(error),
        }),
        None => Ok(vec![mine.to_vec()]),
    };
    let host = machine::host();
    let hosts = gather(host.as_bytes())?;
    let here = hosts.iter().filter(|other| other[..] == *host.as_bytes()).count();
    let address = match (settings::demanded_address().map_err(failed)?, *address) {
        (None, _) if here == place.procs => Ipv4Addr::LOCALHOST,
        (None, Some(address)) => address,
        _ => settings::address().map_err(failed)?,
    };
    lobby::open_at(address).map_err(failed)?;
    let bundle = Bundle::allocate(false);
    let endpoint = Endpoint::allocate(bundle, here)?;
    endpoint.inbox.hear_notices(hear);
    let token = u64::from_le_bytes(netdyno_host::random::bytes().map_err(failed)?);
    let all = gather(&[&endpoint.name.encode()[..], &token.to_le_bytes()].concat())?;
    let read = |bytes: &Vec<u8>| {
        let bytes: &[u8; Name::LEN + 8] = bytes[..].try_into().ok()?;
        let (name, token) = bytes.split_at(Name::LEN);
        Some((Name::decode(name.try_into().ok()?), u64::from_le_bytes(token.try_into().ok()?)))
    };
    let all: Option<Vec<(Name, u64)>> = all.iter().map(read).collect();
    let all = all.filter(|all| all.len() == place.procs);
    let all = all.ok_or_else(|| failed("the launcher has mixed up what the ranks gave it"))?;
    let id = all[0].1;
    endpoint.resize(place.procs)?;
    for (rank, (name, _)) in all.iter().enumerate() {
        endpoint.map(rank, *name, tag(id, rank))?;
    }
    endpoint.tag.set(tag(id, place.rank));
    endpoint.open()?;
    let started = JOB.get_or_init(|| Job {
        process: std::process::id(),
        rank: place.rank,
        ranks: place.procs,
        id,
        endpoint,
        names: all.iter().map(|(name, _)| *name).collect(),
        pmi: Mutex::new(pmi.take()),
        is_invited,
        controls: Cell::new(0),
        barriers: Cell::new(0),
        arrived: [const { Cell::new(0) }; ROUNDS],
        gatherings: Cell::new(0),
        given: RefCell::default(),
        complete: RefCell::default(),
        ended: Cell::new(None),
        left: Cell::new(None),
        closed: RefCell::default(),
        meeting: AtomicU8::new(Meeting::Nothing as u8),
        is_waiting: Cell::new(false),
        is_telling: AtomicBool::new(false),
        code: Cell::new(0),
        is_ending: AtomicBool::new(false),
        callback: Cell::new(None),
        environment: OnceLock::new(),
    });
    started.connect()?;
    started.barrier()?;
    let environment = started.broadcast(0, environment())?;
    let _ = started.environment.set(read_environment(&environment));
    Ok(started)
}

/// Returns the tag of a rank's endpoint: neither `AM_NONE` nor `AM_ALL`.
fn tag(id: u64, rank: usize) -> u64 {
    id << 17 | 1 << 16 | rank as u64
}

/// Returns the variables of the environment, each with a zero behind it.
fn environment() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in std::env::vars_os() {
        bytes.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    bytes
}

fn read_environment(bytes: &[u8]) -> Vec<CString> {
    let variables = bytes.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    variables.filter_map(|variable| CString::new(variable).ok()).collect()
}

impl Job {
    /// Connects to all ranks: calls those behind this one, and is called by those before.
    fn connect(&self) -> Result<(), Refusal> {
        let time = settings::peer_timeout().map_err(failed)?;
        for rank in self.rank + 1..self.ranks {
            self.send(rank, [HELLO, 0, 0, 0], &[])?;
        }
        let (until, connected) = (Instant::now() + time, || self.endpoint.peers.borrow().len() + 1);
        let is_over = || connected() >= self.ranks || Instant::now() > until;
        self.meet(Meeting::Start, || self.wait(None, is_over, |_| true))?;
        if connected() < self.ranks {
            let missing = self.ranks - connected();
            return Err(failed(format!("{missing} of {} ranks have not connected in {time:?}", self.ranks)));
        }
        Ok(())
    }

    /// Does something together with all other ranks.
    fn meet<T>(&self, meeting: Meeting, work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.meeting.store(meeting as u8, Ordering::Relaxed);
        let met = work();
        self.meeting.store(Meeting::Nothing as u8, Ordering::Relaxed);
        met
    }

    /// Polls until `is_over`, for a message of rank `of`. Ends this rank if a rank has ended that this one needs for it.
    fn wait(
        &self,
        of: Option<usize>,
        is_over: impl Fn() -> bool,
        is_needed: impl Fn(&Ended) -> bool,
    ) -> Result<(), Refusal> {
        self.is_waiting.set(true);
        let met = self.poll_until(of, is_over, is_needed);
        self.is_waiting.set(false);
        met
    }

    fn poll_until(
        &self,
        of: Option<usize>,
        is_over: impl Fn() -> bool,
        is_needed: impl Fn(&Ended) -> bool,
    ) -> Result<(), Refusal> {
        let (mut vain, mut asked) = (0_u32, None);
        while !is_over() {
            if self.endpoint.bundle().poll()? == 0 {
                vain += 1;
                if let Some(ended) = self.ended.get().filter(&is_needed) {
                    self.exit(ended.code);
                }
                if let Some(rank) = of.filter(|rank| self.closed.borrow().contains(rank)) {
                    fail(&format!("waits for rank {rank} of {}, which has closed its endpoint", self.ranks));
                }
                if let Some(rank) = of.filter(|_| vain.is_multiple_of(POLLS_PER_CLOCK))
                    && asked.get_or_insert_with(Instant::now).elapsed() > ASK_AFTER
                {
                    // If the rank is lost, this message is not answered, and the loss ends the job.
                    self.send(rank, [HELLO, 0, 0, 0], &[])?;
                    asked = None;
                }
                if let Ok(Some(link)) = self.endpoint.link.try_borrow_mut().as_deref_mut() {
                    link.idle(Duration::from_millis(10));
                }
            }
        }
        Ok(())
    }

    /// Polls, except in a handler. Returns the number of messages between ranks that have come.
    ///
    /// # Errors
    /// As of a poll.
    pub fn take_controls(&self) -> Result<u64, Refusal> {
        let before = self.controls.get();
        if !self.endpoint.bundle().is_barred() {
            self.endpoint.bundle().poll()?;
        }
        Ok(self.controls.get() - before)
    }

    /// Waits until all ranks have called this: by messages to the ranks 1, 2, 4, … behind this one (Hensgen, Finkel and
    /// Manber 1988).
    ///
    /// # Errors
    /// Returns `Resource` in a handler.
    pub fn barrier(&self) -> Result<(), Refusal> {
        self.check_may_wait()?;
        let nth = self.barriers.get() + 1;
        self.barriers.set(nth);
        self.meet(Meeting::Barrier, || {
            let mut distance = 1;
            for round in 0.. {
                if distance >= self.ranks {
                    break;
                }
                self.send((self.rank + distance) % self.ranks, [BARRIER, round as u64, 0, 0], &[])?;
                let before = (self.rank + self.ranks - distance) % self.ranks;
                self.wait(Some(before), || self.arrived[round].get() >= nth, |ended| ended.barriers < nth)?;
                distance *= 2;
            }
            Ok(())
        })
    }

    /// Gives `mine` to all ranks, and returns what each has given, by rank.
    ///
    /// # Errors
    /// As of [`Job::barrier`].
    pub fn gather(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        let nth = self.begin_gathering()?;
        self.meet(Meeting::Gathering, || {
            self.others().try_for_each(|rank| self.give(rank, nth, mine))?;
            self.others().try_for_each(|rank| self.wait_for_gift(nth, rank))
        })?;
        Ok((0..self.ranks)
            .map(|rank| if rank == self.rank { mine.to_vec() } else { self.taken(nth, rank) })
            .collect())
    }

    /// Gives bytes of a rank to all others. Returns them at all ranks.
    ///
    /// # Errors
    /// As of [`Job::barrier`].
    pub fn broadcast(&self, root: usize, mine: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let nth = self.begin_gathering()?;
        if self.rank == root {
            let give = |rank| self.give(rank, nth, &mine);
            self.meet(Meeting::Gathering, || self.others().try_for_each(give))?;
            return Ok(mine);
        }
        self.meet(Meeting::Gathering, || self.wait_for_gift(nth, root))?;
        Ok(self.taken(nth, root))
    }

    /// Waits until a rank has given everything.
    fn wait_for_gift(&self, nth: u64, rank: usize) -> Result<(), Refusal> {
        let is_complete = || self.complete.borrow().contains(&(nth, rank));
        self.wait(Some(rank), is_complete, |ended| ended.gatherings <= nth)
    }

    fn begin_gathering(&self) -> Result<u64, Refusal> {
        self.check_may_wait()?;
        let nth = self.gatherings.get();
        if nth > 0 && nth.is_multiple_of(GATHERINGS_AHEAD) {
            self.barrier()?;
        }
        self.gatherings.set(nth + 1);
        Ok(nth)
    }

    /// Refuses what a handler may not do, or nobody after the end of the endpoint, also where no message would be sent.
    fn check_may_wait(&self) -> Result<(), Refusal> {
        if self.endpoint.has_ended.load(Ordering::Relaxed) {
            Err(refuse(Code::NotInit, "the endpoint of the job was freed"))
        } else if self.endpoint.bundle().is_barred() {
            Err(refuse(Code::Resource, "a handler may not wait for other ranks"))
        } else {
            Ok(())
        }
    }

    fn give(&self, rank: usize, nth: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let len = bytes.len() as u64;
        if bytes.is_empty() {
            return self.send(rank, [GATHER, nth, len, 0], &[]);
        }
        bytes.chunks(PIECE).try_for_each(|piece| self.send(rank, [GATHER, nth, len, 0], piece))
    }

    /// Takes out what a rank has given.
    fn taken(&self, nth: u64, rank: usize) -> Vec<u8> {
        self.complete.borrow_mut().remove(&(nth, rank));
        self.given.borrow_mut().remove(&(nth, rank)).unwrap_or_default()
    }

    /// Ends this rank's part in the job, and lets the process go on.
    pub fn close(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        // A handler that calls this keeps its endpoint.
        let _ = polling::free_all();
        self.endpoint.close();
        at_exit();
    }
}
