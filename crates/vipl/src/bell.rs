//! What wakes a thread that sleeps: the wire, and a bell of its own that others ring.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How often this process has come of another one: what its thread kept before is rung there.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// This process was forked: its thread takes a bell of its own.
pub fn disown() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A thread's bell.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A new one.
    ///
    /// # Errors
    /// The system has none left.
    pub fn new() -> Result<Arc<Self>, Errno> {
        Ok(Arc::new(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// This thread's, made when it is first asked for.
    ///
    /// # Errors
    /// The system has none left.
    pub fn of_this_thread() -> Result<Arc<Self>, Errno> {
        thread_local! {
            static KEPT: RefCell<Option<(u32, Arc<Bell>)>> = const { RefCell::new(None) };
        }
        let forks = FORKS.load(Ordering::Relaxed);
        let kept = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            match &*kept {
                Some((of, bell)) if *of == forks => Ok(Arc::clone(bell)),
                _ => {
                    let new = Self::new()?;
                    *kept = Some((forks, Arc::clone(&new)));
                    Ok(new)
                }
            }
        });
        // A thread that is about to end keeps nothing any more.
        kept.unwrap_or_else(|_| Self::new())
    }

    /// Wakes its thread, now or as soon as it sleeps.
    pub fn ring(&self) {
        // One that is full of rings has been rung.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Sleeps until it is rung, until there is something on the wire, if that is given, or until the
    /// time is up, if there is an end to it. A signal of the program's ends it as well.
    pub fn sleep(&self, wire: Option<BorrowedFd<'_>>, most: Option<Duration>) {
        let bell = self.0.as_fd();
        let mut awaited = [bell, wire.unwrap_or(bell)].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let count = if wire.is_some() { 2 } else { 1 };
        // Longer than the system can count is without end.
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // Whoever is woken looks at what there is, for whatever reason.
        let _ = poll(&mut awaited[..count], most.as_ref());
        // It may not have been rung.
        let _ = read(&self.0, &mut [0; 8]);
    }
}

#[cfg(test)]
impl Bell {
    /// Whether it has been rung since its thread slept.
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
        let bell = Bell::new().unwrap();
        bell.ring();
        bell.ring();
        bell.sleep(None, None);
        let other = Arc::clone(&bell);
        let ringer = std::thread::spawn(move || other.ring());
        bell.sleep(None, None);
        ringer.join().unwrap();
    }

    #[test]
    fn a_thread_keeps_its_bell_until_its_process_is_another_one() {
        let [first, same] = [(); 2].map(|()| Bell::of_this_thread().unwrap());
        assert!(Arc::ptr_eq(&first, &same));
        disown();
        assert!(!Arc::ptr_eq(&first, &Bell::of_this_thread().unwrap()));
    }

    #[test]
    fn a_sleep_ends_with_its_time_and_with_the_wire() {
        let bell = Bell::new().unwrap();
        let began = Instant::now();
        bell.sleep(None, Some(Duration::from_millis(2)));
        assert!(began.elapsed() >= Duration::from_millis(2));
        let wire = Bell::new().unwrap();
        wire.ring();
        bell.sleep(Some(wire.0.as_fd()), None);
        wire.sleep(Some(bell.0.as_fd()), Some(Duration::MAX));
    }
}
