//! The job of ranks that others have started, on any host: by a function of a program, by ssh, or by another launcher.
//! They connect to an [`Entrance`] and get their ranks in the order in which they come.

use super::entrance::Entrance;
use super::process::Process;
use super::service::{Service, Verdict};
use super::{End, GRACE, LaunchError, PROCS_AT_MOST, await_any, chosen, readable};
use crate::place::variables;
use crate::pmi::ABORTED;
use netdyno_host::life::Life;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use rustix::process::Signal;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A process that starts ranks, such as ssh. A drop kills it.
#[derive(Debug)]
pub struct Starter {
    name: String,
    /// None if the process has ended and left no status: a program may ignore the ends of its children, or wait for them
    /// itself.
    process: Option<Process>,
}

impl Starter {
    /// Runs a command that starts ranks. It has no standard input. `name` is what errors call it. The process ends with
    /// the calling thread.
    ///
    /// # Errors
    /// Returns an I/O error if the command cannot be run.
    pub fn run(name: String, mut command: Command) -> io::Result<Self> {
        for variable in variables() {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null());
        // The process needs no descriptor. It inherits that of nothing.
        let process = match Process::start(command, OwnedFd::from(File::open("/dev/null")?)) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => None,
            process => Some(process?),
        };
        Ok(Self { name, process })
    }

    /// Returns the handle of the process until its end was seen.
    fn life(&self) -> Option<&Life> {
        self.process.as_ref()?.life()
    }

    /// Takes the exit status of a process that has ended. Returns its error.
    fn reap(&mut self) -> io::Result<Option<LaunchError>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let status = match process.reap() {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::CHILD) => return Ok(None),
            status => status?,
        };
        Ok((!status.success()).then(|| LaunchError::Starter { name: self.name.clone(), status }))
    }
}

/// Lets `procs` ranks in, serves PMI to them, and waits for their end and that of `starters`. The ranks must have come
/// `within` this time. Ranks that come later are refused.
///
/// Once a rank has failed, the others are told to end, and the starters get SIGTERM after 2 s, and SIGKILL 2 s later.
///
/// # Errors
/// Returns an error if ranks do not come, are lost, or do not keep the protocol, or if a starter fails.
pub fn serve(entrance: Entrance, procs: usize, starters: Vec<Starter>, within: Duration) -> Verdict {
    if !(1..=PROCS_AT_MOST).contains(&procs) {
        return Err(LaunchError::Procs(procs));
    }
    let address = entrance.invitation().address;
    let mut job = Job {
        entrance: Some(entrance),
        address,
        within,
        began: Instant::now(),
        came: 0,
        procs,
        service: Service::new(procs),
        starters,
        told: None,
    };
    let mut verdict = None;
    while job.is_running() {
        if verdict.is_some() {
            job.tell();
        }
        match job.look() {
            Ok(seen) => verdict = verdict.or(seen),
            // The ranks were told, and nothing more can be done.
            Err(_) if verdict.is_some() => break,
            Err(error) => verdict = Some(Err(error)),
        }
    }
    verdict.unwrap_or(Ok(End::Done))
}

struct Job {
    /// The port until all ranks have come.
    entrance: Option<Entrance>,
    address: SocketAddr,
    within: Duration,
    began: Instant,
    came: usize,
    procs: usize,
    service: Service,
    starters: Vec<Starter>,
    /// When the ranks were told to end.
    told: Option<Instant>,
}

/// What can be read.
struct Events {
    entrance: bool,
    ranks: Vec<usize>,
    starters: Vec<usize>,
}

impl Job {
    /// Reports whether something is to be waited for. A rank that was told to end has a while for it.
    fn is_running(&self) -> bool {
        let starters = self.starters.iter().any(|starter| starter.life().is_some());
        let ranks = self.service.sockets().next().is_some();
        match self.told {
            None => self.entrance.is_some() || ranks || starters,
            Some(told) => starters || ranks && told.elapsed() < GRACE,
        }
    }

    /// Tells the ranks and the starters to end: first a word, after a while SIGTERM, then SIGKILL.
    fn tell(&mut self) {
        let signal = match self.told.map(|told| told.elapsed()) {
            None => {
                self.told = Some(Instant::now());
                self.entrance = None;
                for (_, socket) in self.service.sockets() {
                    // A rank that is gone needs to be told nothing.
                    let _ = send(socket, ABORTED.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                    let _ = shutdown(socket, Shutdown::Write);
                }
                return;
            }
            Some(passed) if passed > 2 * GRACE => Signal::KILL,
            Some(passed) if passed > GRACE => Signal::TERM,
            Some(_) => return,
        };
        self.starters.iter().flat_map(|starter| &starter.process).for_each(|process| process.signal(signal));
    }

    /// Waits for the next events and takes them. Returns the verdict on the job if it must end.
    fn look(&mut self) -> Result<Option<Verdict>, LaunchError> {
        let events = self.events()?;
        let mut verdict = None;
        let is_over = self.told.is_some();
        events.ranks.into_iter().for_each(|rank| self.service.listen(rank, is_over, &mut verdict));
        if events.entrance {
            self.admit()?;
        }
        let mut failed = None;
        for starter in events.starters {
            failed = failed.or(self.starters[starter].reap()?);
        }
        let lost = self.lost();
        // Other ranks notice a rank that is lost, and abort.
        let verdict = verdict.filter(|verdict| lost.is_none() || !matches!(verdict, Ok(End::Aborted { .. })));
        Ok(verdict.or_else(|| lost.or(failed).or_else(|| self.absent()).map(Err)))
    }

    /// Returns the error of a rank that has gone.
    fn lost(&self) -> Option<LaunchError> {
        let lost = self.service.lost().map(LaunchError::Lost);
        lost.or_else(|| self.service.deserted(|_| false))
    }

    /// Returns the error of ranks that have not come in time.
    fn absent(&self) -> Option<LaunchError> {
        let Self { came, procs, address, within, .. } = *self;
        let is_late = self.entrance.is_some() && self.began.elapsed() > within;
        is_late.then_some(LaunchError::Absent { came, procs, address, within })
    }

    /// Waits for events.
    fn events(&self) -> Result<Events, LaunchError> {
        let mut fds = Vec::new();
        if let Some(entrance) = &self.entrance {
            let (listener, callers) = entrance.port();
            fds.push(readable(listener));
            fds.extend(callers.map(readable));
        }
        let of_entrance = fds.len();
        let ranks: Vec<usize> = self.service.sockets().map(|(rank, _)| rank).collect();
        fds.extend(self.service.sockets().map(|(_, socket)| readable(socket)));
        let lives = self.starters.iter().enumerate();
        let lives = lives.filter_map(|(nth, starter)| Some((nth, starter.life()?)));
        let starters: Vec<usize> = lives.clone().map(|(nth, _)| nth).collect();
        fds.extend(lives.map(|(_, life)| readable(life)));
        let is_ready = await_any(&mut fds)?;
        let (entrance, rest) = is_ready.split_at(of_entrance);
        let (of_ranks, of_starters) = rest.split_at(ranks.len());
        Ok(Events {
            entrance: entrance.contains(&true),
            ranks: chosen(ranks, of_ranks),
            starters: chosen(starters, of_starters),
        })
    }

    /// Gives those that have shown the key their ranks. The port closes behind the last one.
    fn admit(&mut self) -> Result<(), LaunchError> {
        let Some(entrance) = &mut self.entrance else { return Ok(()) };
        for socket in entrance.admit().map_err(LaunchError::Admit)? {
            if self.came < self.procs && self.welcome(&socket) {
                self.service.connect(self.came, socket.into());
                self.came += 1;
            }
        }
        if self.came == self.procs {
            self.entrance = None;
        }
        Ok(())
    }

    /// Tells a rank its place. Returns whether that is possible.
    fn welcome(&self, socket: &TcpStream) -> bool {
        let line = format!("cmd=place rank={} size={}\n", self.came, self.procs);
        send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) == Ok(line.len())
    }
}
