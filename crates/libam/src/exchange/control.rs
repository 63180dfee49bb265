//! Messages between the ranks of a job, and its end.

use super::CONTROL;
use crate::code::Code;
use crate::ending::{flush_output, kill};
use crate::job::{EXIT, Job, TOLD, fail, has_ended, job};
use crate::lobby::{Calling, End, Notice};
use crate::lock::held;
use crate::message::Words;
use crate::objects::close_all;
use crate::refusal::{Refusal, failed, refuse, say};
use netdyno_host::signals::without_signals;
use netdyno_stack::am::RequestError;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Time in which a rank that ends the job waits for room to the others.
const ROOM_TIME: Duration = Duration::from_millis(100);
/// Time in which the others take the message that the job ends.
const TAKING_TIME: Duration = Duration::from_millis(100);
/// Time in which a rank that ends the job calls those that take no message. Those that were told abort the job a
/// second later, and a launcher names the rank that aborts first.
const CALLING: Duration = Duration::from_millis(500);
/// Time in which a rank calls the others because its process ends.
const CALLING_AT_LEISURE: Duration = Duration::from_secs(5);
/// The most calls at once.
const CALLERS: usize = 32;
/// A rank that ends well leaves the others this time for what needs no messages.
const GRACE: Duration = Duration::from_secs(1);
/// The time after which another thread ends this rank, if that of the job does not poll.
const GRACE_ELSEWHERE: Duration = Duration::from_secs(2);

impl Job {
    /// Sends a message to another rank.
    ///
    /// # Errors
    /// Returns `Resource` in a handler, and if the rank is not reached.
    pub fn send(&self, rank: usize, words: Words, bytes: &[u8]) -> Result<(), Refusal> {
        let unreachable = |status| failed(format!("rank {rank} is not reached: {status}"));
        let translation = self.endpoint.translation(rank)?;
        let Ok(mut link) = self.endpoint.link.try_borrow_mut() else {
            return Err(refuse(Code::Resource, "a handler may not do this"));
        };
        let Some(link) = &mut *link else {
            return Err(refuse(Code::Resource, "the endpoint of the job was freed"));
        };
        let peer = self.endpoint.peer_of(link, rank, translation).map_err(unreachable)?;
        self.endpoint.send_piece(link, peer, CONTROL, words, bytes).map_err(unreachable)
    }

    /// Ends the job with a code, at all ranks. A rank that takes no message is called, so that none keeps the others
    /// waiting.
    pub fn exit(&self, code: c_int) -> ! {
        // A handler may end the job while this rank tells its end. The first code holds.
        let is_nested = self.is_telling.swap(true, Ordering::Relaxed);
        let code = if is_nested { self.code.get() } else { code };
        self.code.set(code);
        if !self.is_ending.load(Ordering::Relaxed) {
            let end = self.own_end(code);
            let untold = if is_nested { self.others().collect() } else { self.send_ends(end) };
            self.call(&untold, Notice::End(end));
        }
        self.leave(code);
        // Datagrams that are not acknowledged are sent again for a while. A handler that ends the job keeps the endpoint
        // borrowed.
        close_all();
        // It may have left its bundle.
        if let Some(_held) = self.endpoint.bundle().try_take_lock() {
            self.endpoint.close();
        }
        kill(code)
    }

    /// Sends the end of the job to all other ranks. Returns those that have not got it in time: they have no room or
    /// do not poll, or another thread uses the bundle. The lock of the bundle is free then: the program's callback
    /// may wait for that thread.
    fn send_ends(&self, end: End) -> Vec<usize> {
        let until = Instant::now() + ROOM_TIME;
        let held = loop {
            match self.endpoint.bundle().try_take_lock() {
                None if Instant::now() < until => thread::yield_now(),
                held => break held,
            }
        };
        if held.is_none() {
            return self.others().collect();
        }
        let (sent, mut untold): (Vec<_>, Vec<_>) =
            self.others().partition(|rank| self.sends_end(*rank, end, until));
        untold.extend(self.untaken(sent));
        untold
    }

    /// Waits until ranks have taken what was sent to them. Returns those that have not in time: they do not poll the bundle
    /// of the job. Then another thread of theirs has to know.
    fn untaken(&self, mut ranks: Vec<usize>) -> Vec<usize> {
        let until = Instant::now() + TAKING_TIME;
        let Ok(mut link) = self.endpoint.link.try_borrow_mut() else { return ranks };
        let Some(link) = &mut *link else { return ranks };
        loop {
            ranks.retain(|rank| {
                let peer = self.endpoint.peer_named(&self.names[*rank]);
                peer.is_some_and(|peer| {
                    link.in_flight(peer) > 0 && !self.endpoint.peers.borrow()[peer.index()].is_lost
                })
            });
            if ranks.is_empty() || Instant::now() >= until {
                return ranks;
            }
            self.endpoint.poll_while_waiting(link);
        }
    }

    /// Sends the end of the job to a rank, if there is room in time. Returns whether it was sent. A handler cannot send.
    fn sends_end(&self, rank: usize, [code, barriers, gatherings]: End, until: Instant) -> bool {
        let Ok(mut link) = self.endpoint.link.try_borrow_mut() else { return false };
        let Some(link) = &mut *link else { return false };
        let Some(peer) = self.endpoint.peer_named(&self.names[rank]) else { return false };
        loop {
            match link.try_request_medium(peer, CONTROL, [EXIT, code, barriers, gatherings], &[]) {
                Ok(()) => return true,
                Err(RequestError::Full) if Instant::now() < until => self.endpoint.poll_while_waiting(link),
                Err(_) => return false,
            }
        }
    }

    /// Tells all other ranks something where no message can be sent.
    pub fn call_all_with(&self, notice: Notice) {
        self.call(&self.others().collect::<Vec<_>>(), notice);
    }

    /// Tells ranks something in a handler or at the end of the process, where no message can be sent. A rank that is
    /// gone or stopped needs not be told, and keeps no other one waiting.
    fn call(&self, ranks: &[usize], notice: Notice) {
        let until =
            Instant::now() + if matches!(notice, Notice::Left) { CALLING_AT_LEISURE } else { CALLING };
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(rank) = ranks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let _ = self.call_one(*rank, notice, until);
            }
        };
        thread::scope(|scope| {
            for _ in 1..ranks.len().min(CALLERS) {
                // The others call, if the system has no more threads.
                let _ = without_signals(|| thread::Builder::new().spawn_scoped(scope, work));
            }
            work();
        });
    }

    fn call_one(&self, rank: usize, notice: Notice, until: Instant) -> io::Result<()> {
        match Calling::begin(&self.names[rank], until)? {
            Some((calling, _)) => calling.tell(&self.endpoint.name, notice, until),
            None => Ok(()),
        }
    }
}

/// Ends this rank if another one has ended the job or left it: at once if it failed, else after a while, so that this rank
/// can do what it does between its last barrier and its end.
#[inline]
pub fn end_if_told() {
    if has_ended() {
        end_in_time();
    }
}

#[cold]
fn end_in_time() {
    let Some(job) = job().filter(|job| !job.is_telling.load(Ordering::Relaxed)) else { return };
    if !job.endpoint.bundle().is_held_by_this_thread() {
        return end_elsewhere(job);
    }
    if let Some(ended) = job.ended.get()
        && (ended.code != 0 || ended.when.elapsed() > GRACE && !job.is_meeting())
    {
        job.exit(ended.code);
    }
    if let Some(left) = job.left.get()
        && job.ended.get().is_none()
        && left.when.elapsed() > GRACE
    {
        fail(&has_left(left.rank, job));
    }
}

fn has_left(rank: usize, job: &Job) -> String {
    format!("rank {rank} of {} has ended without AMX_SPMDExit", job.ranks)
}

/// Ends this rank in a thread that may not use the endpoint of the job, if the thread that uses it does not poll. The
/// callback is of that thread.
fn end_elsewhere(job: &Job) {
    let told = *held(&TOLD);
    let Some(told) = told.filter(|told| told.when.elapsed() > GRACE_ELSEWHERE) else { return };
    if job.is_ending.load(Ordering::Relaxed) || told.code == 0 && job.is_meeting() {
        return;
    }
    if let Some(rank) = told.left {
        say(&format!("rank {}: {}", job.rank, has_left(rank, job)));
    }
    flush_output();
    if told.code == 0 {
        drop(job.take_pmi());
    }
    kill(told.code)
}
