//! A progress thread: it makes progress while the program computes. The kernel wakes it.
//!
//! The program and the thread share what makes progress behind a lock. The thread sleeps on a descriptor
//! that the wire makes readable. It wakes the program's waiting threads after each progress.

use crate::signals::without_signals;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{read, write};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longest sleep of the thread. Each sleep ends by a wake-up or a timer before that.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Makes progress inside calls alone. A descriptor tells when a call would make progress.
pub trait Progress: Send + 'static {
    /// Says why no more progress can be made.
    type Error: Send + 'static;

    /// Makes the progress that can be made at once. Returns whether there was any.
    ///
    /// # Errors
    /// Returns why this call made none. The next call may make progress again.
    fn progress(&mut self) -> Result<bool, Self::Error>;

    /// Prepares a sleep on the descriptor. Returns how long it may last at most; zero if progress may be
    /// possible now.
    fn prepare_sleep(&mut self) -> Duration;

    /// Takes a prepared sleep back: arrivals need not make the descriptor readable any more.
    fn cancel_sleep(&mut self);

    /// Reports whether calls since [`Progress::prepare_sleep`] need progress before the sleep ends by
    /// itself, in `left`.
    fn must_end_sleep(&mut self, left: Duration) -> bool;

    /// Returns the descriptor. It stays the same.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// The program's handle on something that a progress thread moves on. Dropping it ends the thread.
#[derive(Debug)]
pub struct ProgressThread<T: Progress> {
    shared: Arc<Shared<T>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<T: Progress> {
    state: Mutex<State<T>>,
    /// Notified after each progress of the thread, and after an error.
    has_progressed: Condvar,
    /// An eventfd that ends the thread's sleep.
    wakeup: OwnedFd,
}

struct State<T: Progress> {
    /// `None` once the program has taken it back.
    content: Option<T>,
    /// The thread's error. The thread pauses until the program has seen it.
    failed: Option<T::Error>,
    /// The number of calls of the thread that made progress.
    progressed: u64,
    /// The end of the thread's sleep at the latest, while it sleeps.
    sleeps_until: Option<Instant>,
    /// Whether the program makes progress itself for now.
    is_attended: bool,
    /// Whether the thread sleeps until the program no longer makes progress itself.
    dozes: bool,
    has_to_end: bool,
}

impl<T: Progress> ProgressThread<T> {
    /// Starts the thread. It runs where this thread may run, and takes no signals.
    ///
    /// # Errors
    /// Returns the error of the system if it has no descriptor or no thread left.
    pub fn start(content: T) -> io::Result<Self> {
        let descriptor = content.descriptor().try_clone_to_owned()?;
        let state = State {
            content: Some(content),
            failed: None,
            progressed: 0,
            sleeps_until: None,
            is_attended: false,
            dozes: false,
            has_to_end: false,
        };
        let wakeup = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { state: Mutex::new(state), has_progressed: Condvar::new(), wakeup });
        let of_thread = Arc::clone(&shared);
        let builder = thread::Builder::new().name("netdyno-progress".into());
        let thread = without_signals(|| builder.spawn(move || of_thread.run(&descriptor)))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Locks what the thread moves on, for calls of the program.
    ///
    /// # Errors
    /// Returns the error of the thread, once.
    ///
    /// # Panics
    /// Panics if a handler has panicked in the thread.
    pub fn lock(&self) -> Result<Guard<'_, T>, T::Error> {
        let mut state = self.shared.lock();
        match state.failed.take() {
            None => Ok(Guard { shared: &self.shared, state: Some(state) }),
            Some(error) => {
                self.shared.wake();
                Err(error)
            }
        }
    }

    /// Ends the thread and returns what it has moved on.
    ///
    /// # Errors
    /// Returns an error of the thread that the program has not seen.
    ///
    /// # Panics
    /// As [`ProgressThread::lock`].
    pub fn stop(mut self) -> Result<T, T::Error> {
        self.end();
        let mut state = self.shared.lock();
        match (state.failed.take(), state.content.take()) {
            (Some(error), _) => Err(error),
            (None, Some(content)) => Ok(content),
            // Only this function takes the content, and it takes the handle with it.
            (None, None) => unreachable!("the content was taken twice"),
        }
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).has_to_end = true;
        self.shared.wake();
        // A panic of the thread has been printed.
        let _ = thread.join();
    }
}

impl<T: Progress> Drop for ProgressThread<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T: Progress> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("a handler has panicked in the progress thread")
    }

    /// Ends the thread's sleep.
    fn wake(&self) {
        // If the counter is full, the thread has already been woken.
        let _ = write(&self.wakeup, &1_u64.to_ne_bytes());
    }

    fn run(&self, descriptor: &OwnedFd) {
        loop {
            let mut state = self.lock();
            (state.sleeps_until, state.dozes) = (None, false);
            if state.has_to_end {
                return;
            }
            // The program makes progress itself, or has to see an error first. A readable descriptor would not
            // let the thread sleep.
            if state.is_attended || state.failed.is_some() {
                state.dozes = true;
                drop(state);
                self.sleep(None, LONGEST_SLEEP);
                continue;
            }
            if state.make_progress() {
                self.has_progressed.notify_all();
                drop(state);
                // A program that waits for the lock on this processor gets it.
                thread::yield_now();
                continue;
            }
            let most = state.prepare_sleep();
            if most.is_zero() {
                drop(state);
                thread::yield_now();
                continue;
            }
            state.sleeps_until = Some(Instant::now() + most);
            drop(state);
            self.sleep(Some(descriptor), most);
        }
    }

    /// Sleeps until the descriptor is readable, until another thread wakes this one, or until `most` has
    /// passed.
    fn sleep(&self, descriptor: Option<&OwnedFd>, most: Duration) {
        let own = self.wakeup.as_fd();
        let mut awaited = [own, descriptor.map_or(own, AsFd::as_fd)]
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        // The reason does not matter: the woken thread checks everything.
        let _ = poll(&mut awaited, Timespec::try_from(most).ok().as_ref());
        // The read fails if nothing has woken this thread.
        let _ = read(&self.wakeup, &mut [0; 8]);
    }
}

impl<T: Progress> State<T> {
    /// Makes progress. Returns whether there was any, or an error.
    fn make_progress(&mut self) -> bool {
        let has_progressed = match self.content.as_mut().map(T::progress) {
            None => false,
            Some(Ok(has_progressed)) => has_progressed,
            Some(Err(error)) => {
                self.failed = Some(error);
                true
            }
        };
        self.progressed += u64::from(has_progressed);
        has_progressed
    }

    fn prepare_sleep(&mut self) -> Duration {
        self.content.as_mut().map_or(LONGEST_SLEEP, |content| content.prepare_sleep().min(LONGEST_SLEEP))
    }
}

impl<T: Progress> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("wakeup", &self.wakeup).finish_non_exhaustive()
    }
}

/// Access to what a progress thread moves on. The thread waits meanwhile.
#[derive(Debug)]
pub struct Guard<'a, T: Progress> {
    shared: &'a Shared<T>,
    /// `None` only inside [`Guard::wait`].
    state: Option<MutexGuard<'a, State<T>>>,
}

impl<T: Progress> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("progressed", &self.progressed).finish_non_exhaustive()
    }
}

impl<'a, T: Progress> Guard<'a, T> {
    /// Returns the number of calls of the thread that made progress.
    pub fn progressed(&self) -> u64 {
        self.state().progressed
    }

    /// Lets the thread work, and waits until it has made progress, at most for `timeout`.
    ///
    /// # Errors
    /// Returns the error of the thread, once.
    ///
    /// # Panics
    /// As [`ProgressThread::lock`].
    pub fn wait(mut self, timeout: Duration) -> Result<Self, T::Error> {
        self.hand_over();
        let shared = self.shared;
        let Some(state) = self.state.take() else { unreachable!("the guard holds the lock") };
        let before = state.progressed;
        let waited =
            shared.has_progressed.wait_timeout_while(state, timeout, |state| state.progressed == before);
        let (mut state, _) = waited.expect("a handler has panicked in the progress thread");
        match state.failed.take() {
            None => Ok(Self { shared, state: Some(state) }),
            Some(error) => {
                shared.wake();
                Err(error)
            }
        }
    }

    /// Announces that the program makes progress itself, until [`Guard::leave`]. The thread makes none
    /// meanwhile, and arrivals do not wake it.
    pub fn attend(&mut self) {
        let Some(state) = &mut self.state else { return };
        if !std::mem::replace(&mut state.is_attended, true)
            && let Some(content) = &mut state.content
        {
            content.cancel_sleep();
        }
    }

    /// Leaves progress to the thread again. A thread that still sleeps is only woken if there is progress to
    /// make, because waking it costs microseconds.
    pub fn leave(&mut self) {
        let Some(state) = &mut self.state else { return };
        if !std::mem::replace(&mut state.is_attended, false) {
            return;
        }
        let Some(until) = state.sleeps_until else { return self.wake_if_it_dozes() };
        let most = state.prepare_sleep();
        if most < until.saturating_duration_since(Instant::now()) {
            state.sleeps_until = None;
            self.shared.wake();
        }
    }

    fn wake_if_it_dozes(&self) {
        if self.state().dozes {
            self.shared.wake();
        }
    }

    /// Wakes the thread, if calls under this guard need it before its sleep ends.
    fn hand_over(&mut self) {
        let Some(state) = &mut self.state else { return };
        if state.is_attended {
            return;
        }
        let State { content: Some(content), sleeps_until: Some(until), .. } = &mut **state else { return };
        if content.must_end_sleep(until.saturating_duration_since(Instant::now())) {
            state.sleeps_until = None;
            self.shared.wake();
        }
    }

    fn state(&self) -> &State<T> {
        match &self.state {
            Some(state) => state,
            None => unreachable!("the guard holds the lock"),
        }
    }
}

impl<T: Progress> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.state().content {
            Some(content) => content,
            None => unreachable!("the content is taken at the end alone"),
        }
    }
}

impl<T: Progress> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self.state.as_mut().and_then(|state| state.content.as_mut()) {
            Some(content) => content,
            None => unreachable!("the guard holds the lock, and the content is taken at the end alone"),
        }
    }
}

impl<T: Progress> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use crate::wakeup::{Waker, Wakeup};

    /// Counts the rings of a wake-up, and fails at some counts.
    struct Counter {
        wakeup: Wakeup,
        arrived: Arc<Mutex<u64>>,
        taken: u64,
        fails_at: Option<u64>,
        /// Set by a call of the program that needs the thread.
        is_owed: bool,
        paid: u64,
    }

    impl Progress for Counter {
        type Error = u64;

        fn progress(&mut self) -> Result<bool, u64> {
            if std::mem::take(&mut self.is_owed) {
                self.paid += 1;
                return Ok(true);
            }
            let arrived = *self.arrived.lock().unwrap();
            if self.taken == arrived {
                return Ok(false);
            }
            self.taken += 1;
            if self.fails_at.take_if(|at| *at == self.taken).is_some() { Err(self.taken) } else { Ok(true) }
        }

        fn prepare_sleep(&mut self) -> Duration {
            self.wakeup.drain();
            if *self.arrived.lock().unwrap() > self.taken { Duration::ZERO } else { Duration::MAX }
        }

        fn cancel_sleep(&mut self) {}

        fn must_end_sleep(&mut self, _: Duration) -> bool {
            self.is_owed
        }

        fn descriptor(&self) -> BorrowedFd<'_> {
            self.wakeup.as_fd()
        }
    }

    fn start(fails_at: Option<u64>) -> (ProgressThread<Counter>, impl Fn()) {
        let wakeup = Wakeup::new().unwrap();
        let waker = Waker::open(std::process::id(), wakeup.descriptor()).unwrap();
        let arrived = Arc::new(Mutex::new(0));
        let counter =
            Counter { wakeup, arrived: Arc::clone(&arrived), taken: 0, fails_at, is_owed: false, paid: 0 };
        let arrive = move || {
            *arrived.lock().unwrap() += 1;
            waker.ring();
        };
        (ProgressThread::start(counter).unwrap(), arrive)
    }

    /// Waits until the content is as wanted. The thread's sleeps would last longer than this test does.
    fn wait_until(thread: &ProgressThread<Counter>, is_so: impl Fn(&Counter) -> bool) {
        let began = Instant::now();
        let mut guard = thread.lock().unwrap();
        while !is_so(&guard) {
            assert!(began.elapsed() < Duration::from_secs(60), "no progress");
            guard = guard.wait(Duration::from_secs(60)).unwrap();
        }
    }

    #[test]
    fn the_thread_takes_what_arrives_while_the_program_computes() {
        let (thread, arrive) = start(None);
        for count in 1..=1000 {
            arrive();
            if count % 100 == 0 {
                wait_until(&thread, |counter| counter.taken == count);
            }
        }
        assert!(thread.lock().unwrap().progressed() >= 1000);
        assert_eq!(thread.stop().unwrap().taken, 1000);
    }

    #[test]
    fn a_call_that_needs_the_thread_ends_its_sleep() {
        let (thread, _) = start(None);
        for paid in 1..=100 {
            thread.lock().unwrap().is_owed = true;
            wait_until(&thread, |counter| counter.paid == paid);
        }
    }

    #[test]
    fn a_program_that_attends_makes_all_progress_itself() {
        let (thread, arrive) = start(None);
        for turn in 1..=100 {
            let mut guard = thread.lock().unwrap();
            guard.attend();
            let before = guard.progressed();
            drop(guard);
            arrive();
            thread::yield_now();
            let mut guard = thread.lock().unwrap();
            assert_eq!(guard.progress(), Ok(true));
            assert_eq!(guard.progressed(), before);
            // What arrives now is left to the thread.
            arrive();
            guard.leave();
            drop(guard);
            wait_until(&thread, |counter| counter.taken == 2 * turn);
        }
    }

    #[test]
    fn an_error_is_reported_once_and_the_thread_goes_on() {
        let (thread, arrive) = start(Some(2));
        (0..5).for_each(|_| arrive());
        let began = Instant::now();
        let error = loop {
            assert!(began.elapsed() < Duration::from_secs(60), "no error");
            if let Err(error) = thread.lock().and_then(|guard| guard.wait(Duration::from_millis(10))) {
                break error;
            }
        };
        assert_eq!(error, 2);
        wait_until(&thread, |counter| counter.taken == 5);
    }

    #[test]
    fn a_thread_that_waits_ends_with_its_handle() {
        let (thread, _) = start(None);
        let guard = thread.lock().unwrap();
        drop(guard.wait(Duration::from_millis(1)).unwrap());
        drop(thread);
        let (thread, arrive) = start(Some(1));
        arrive();
        // The error is not seen, so that the thread pauses.
        thread::sleep(Duration::from_millis(5));
        drop(thread);
    }
}
