//! Wakes a sleeping thread: by an event on the wire, or by an eventfd of the thread's own.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The number of forks between the first process and this one. A wake-up that a thread kept from before a
/// fork is shared with the parent.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Marks this process as forked: its thread makes a new wake-up.
pub fn disown() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The wake-up of a thread: an eventfd.
#[derive(Debug)]
pub struct Wakeup(OwnedFd);

impl Wakeup {
    /// Makes a new wake-up.
    ///
    /// # Errors
    /// Returns the error of the system if no descriptor is left.
    pub fn new() -> Result<Arc<Self>, Errno> {
        Ok(Arc::new(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Returns this thread's wake-up. The first call makes it.
    ///
    /// # Errors
    /// Returns the error of the system if no descriptor is left.
    pub fn of_this_thread() -> Result<Arc<Self>, Errno> {
        thread_local! {
            static KEPT: RefCell<Option<(u32, Arc<Wakeup>)>> = const { RefCell::new(None) };
        }
        let forks = FORKS.load(Ordering::Relaxed);
        let kept = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            match &*kept {
                Some((of, wakeup)) if *of == forks => Ok(Arc::clone(wakeup)),
                _ => {
                    let new = Self::new()?;
                    *kept = Some((forks, Arc::clone(&new)));
                    Ok(new)
                }
            }
        });
        // A thread that is about to end cannot keep its wake-up.
        kept.unwrap_or_else(|_| Self::new())
    }

    /// Wakes the thread, now or as soon as it sleeps.
    pub fn ring(&self) {
        // If the counter is full, the thread has already been woken.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Sleeps until another thread rings, until `wire` is readable, if given, or until `most` has passed,
    /// if given. A signal also ends the sleep.
    pub fn sleep(&self, wire: Option<BorrowedFd<'_>>, most: Option<Duration>) {
        let wakeup = self.0.as_fd();
        let mut awaited =
            [wakeup, wire.unwrap_or(wakeup)].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let count = if wire.is_some() { 2 } else { 1 };
        // A time that is too long for the system means no timeout.
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // The reason does not matter: the woken thread checks everything.
        let _ = poll(&mut awaited[..count], most.as_ref());
        // The read fails if nothing has rung.
        let _ = read(&self.0, &mut [0; 8]);
    }
}

#[cfg(test)]
impl Wakeup {
    /// Returns whether the wake-up was rung since its thread slept. Resets it.
    pub fn is_rung(&self) -> bool {
        let mut count = [0; 8];
        read(&self.0, &mut count).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_ring_is_heard_before_and_after_falling_asleep() {
        let wakeup = Wakeup::new().unwrap();
        wakeup.ring();
        wakeup.ring();
        wakeup.sleep(None, None);
        let other = Arc::clone(&wakeup);
        let ringer = std::thread::spawn(move || other.ring());
        wakeup.sleep(None, None);
        ringer.join().unwrap();
    }

    #[test]
    fn a_thread_keeps_its_bell_until_its_process_is_another_one() {
        let [first, same] = [(); 2].map(|()| Wakeup::of_this_thread().unwrap());
        assert!(Arc::ptr_eq(&first, &same));
        disown();
        assert!(!Arc::ptr_eq(&first, &Wakeup::of_this_thread().unwrap()));
    }

    #[test]
    fn a_sleep_ends_with_its_time_and_with_the_wire() {
        let wakeup = Wakeup::new().unwrap();
        let began = Instant::now();
        wakeup.sleep(None, Some(Duration::from_millis(2)));
        assert!(began.elapsed() >= Duration::from_millis(2));
        let wire = Wakeup::new().unwrap();
        wire.ring();
        wakeup.sleep(Some(wire.0.as_fd()), None);
        wire.sleep(Some(wakeup.0.as_fd()), Some(Duration::MAX));
    }
}
