//! Bundles: polling and waiting for their endpoints, and the end of both.

use crate::code::Code;
use crate::job;
use crate::lock::{Held, held};
use crate::objects::token;
use crate::objects::{BUNDLES, Bundle, Endpoint, Mask, for_each_unshared};
use crate::refusal::{Refusal, in_handler, refuse};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time for which a thread that waits polls before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Longest sleep of a thread that waits. A call for a connection does not end the sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// The shortest and the longest nap of a thread that no peer wakes. Each nap in vain doubles the next one.
const NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(640)];
/// Time between two looks after the endpoints of bundles that are not polled.
const TEND_AFTER: Duration = Duration::from_millis(2);

thread_local! {
    /// The messages that the bundles of these addresses had handled when this thread last returned from a wait. No address
    /// is used twice.
    static SEEN: RefCell<HashMap<usize, u64>> = RefCell::default();

    /// When this thread last looked after the bundles that it does not poll.
    static TENDED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sends again what endpoints of all bundles have lost, except those of bundles that another thread uses now: this thread
/// polls one bundle in vain, and another rank may wait for a message of another one. Looks after them rarely.
#[cold]
pub fn tend_others() {
    if !token::are_several_bundles() {
        return;
    }
    let now = Instant::now();
    if TENDED.get().is_some_and(|last| now - last < TEND_AFTER) {
        return;
    }
    TENDED.set(Some(now));
    for_each_unshared(|bundle| {
        for endpoint in bundle.endpoints.borrow().iter() {
            // An endpoint that polls further out in this thread needs no help.
            if let Ok(Some(link)) = endpoint.link.try_borrow_mut().as_deref_mut() {
                link.tend();
            }
        }
    });
}

impl Bundle {
    /// Frees the bundle with all its endpoints.
    ///
    /// # Errors
    /// Returns `InUse` if a handler of one of the endpoints runs, and `BadArg` if another thread has freed it meanwhile.
    pub fn free(&self) -> Result<(), Refusal> {
        let _held = self.hold()?;
        self.check_lives()?;
        self.end()
    }

    /// Frees the bundle, whose lock is held.
    fn end(&self) -> Result<(), Refusal> {
        let endpoints = self.endpoints.borrow().clone();
        // All or none of them.
        endpoints.iter().try_for_each(|endpoint| endpoint.check_unused())?;
        endpoints.into_iter().try_for_each(Endpoint::free)?;
        self.has_ended.store(true, Ordering::Relaxed);
        held(&BUNDLES).retain(|other| !std::ptr::eq(*other, self));
        Ok(())
    }

    /// Checks, after a wait for the lock, that no other thread has freed the bundle.
    ///
    /// # Errors
    /// Returns `BadArg` if one has.
    pub fn check_lives(&self) -> Result<(), Refusal> {
        if self.has_ended.load(Ordering::Relaxed) {
            return Err(refuse(Code::BadArg, "the bundle was freed"));
        }
        Ok(())
    }

    /// Polls all endpoints. Returns the number of messages that were handled.
    ///
    /// # Errors
    /// Returns `Resource` in a handler, and `BadArg` if another thread has freed the bundle meanwhile.
    #[inline(always)]
    pub fn poll(&self) -> Result<usize, Refusal> {
        let held = self.hold()?;
        if held.is_some() {
            self.check_lives()?;
        }
        match self.only() {
            Some(endpoint) => endpoint.poll(),
            None => self.poll_many(),
        }
    }

    /// Returns the endpoint, if there is exactly one.
    #[inline(always)]
    fn only(&self) -> Option<&'static Endpoint> {
        // SAFETY: nothing changes the endpoints meanwhile. A guard would be two more stores in each poll.
        match unsafe { self.endpoints.try_borrow_unguarded() }.ok()?[..] {
            [endpoint] => Some(endpoint),
            _ => None,
        }
    }

    #[cold]
    fn poll_many(&self) -> Result<usize, Refusal> {
        // Without an endpoint, none says so.
        if self.is_barred() {
            return Err(in_handler());
        }
        // A handler may free endpoints, or move them to a bundle of other threads, so that the borrow may not last.
        let endpoints = self.endpoints.borrow().clone();
        endpoints.into_iter().filter(|endpoint| endpoint.is_in(self)).map(Endpoint::poll).sum()
    }

    /// Waits until a message has been handled since this thread has last waited here. A message that another thread, or a
    /// request of this one, has handled meanwhile counts too, because this thread may wait for what it has changed.
    ///
    /// # Errors
    /// Returns `Resource` in a handler, and if no event is set to end the wait. Returns `BadArg` if another thread
    /// frees the bundle meanwhile.
    pub fn wait(&self) -> Result<(), Refusal> {
        if self.mask.get() == Mask::NoEvents {
            return Err(refuse(
                Code::Resource,
                "no event is set, so that this would wait for ever: call AM_SetEventMask with AM_NOTEMPTY",
            ));
        }
        let mut spun = Instant::now();
        let [mut nap, longest_nap] = NAPS;
        loop {
            let held = self.hold()?;
            self.check_lives()?;
            self.poll()?;
            if self.has_delivered() {
                return Ok(());
            }
            if spun.elapsed() < SPIN {
                drop(held);
                std::thread::yield_now();
            } else if self.sleep(held)? {
                tend_others();
                spun = Instant::now();
            } else {
                std::thread::sleep(nap);
                nap = (2 * nap).min(longest_nap);
            }
        }
    }

    /// Reports whether the endpoints have handled messages since this thread has last asked.
    fn has_delivered(&self) -> bool {
        let endpoints = self.endpoints.borrow();
        let delivered = endpoints.iter().map(|endpoint| endpoint.delivered.get());
        let delivered = delivered.fold(self.delivered_elsewhere.get(), u64::wrapping_add);
        let at = ptr::from_ref(self).addr();
        SEEN.with_borrow_mut(|seen| seen.insert(at, delivered).unwrap_or(0) != delivered)
    }

    /// Sleeps until a message arrives. Other threads may use the bundle meanwhile. Returns false at once if nobody
    /// would end the sleep.
    ///
    /// # Errors
    /// As of [`Bundle::hold`].
    fn sleep(&self, held: Option<Held<'_>>) -> Result<bool, Refusal> {
        let endpoints = self.endpoints.borrow().clone();
        let most = endpoints.iter().map(|endpoint| endpoint.prepare_sleep(LONGEST_SLEEP)).min();
        let most = most.unwrap_or(LONGEST_SLEEP);
        if most.is_zero() {
            endpoints.iter().for_each(|endpoint| endpoint.cancel_sleep());
            return Ok(false);
        }
        let descriptors: Vec<_> = endpoints.iter().filter_map(|endpoint| endpoint.descriptor()).collect();
        drop(held);
        let mut awaited: Vec<_> = descriptors
            .iter()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
            .collect();
        // The reason of the wake-up does not matter: everything is polled next.
        let _ = poll(&mut awaited, Timespec::try_from(most).ok().as_ref());
        let _held = self.hold()?;
        // Another thread may have moved some, and now use them under the lock of another bundle.
        let ours = endpoints.iter().filter(|endpoint| endpoint.is_in(self));
        ours.for_each(|endpoint| endpoint.cancel_sleep());
        Ok(true)
    }
}

/// Reports whether this thread runs a handler.
pub fn is_in_handler() -> bool {
    let is_found = Cell::new(false);
    for_each_unshared(|bundle| is_found.set(is_found.get() || bundle.is_in_handler()));
    is_found.get()
}

/// Frees all bundles.
///
/// # Errors
/// Returns `InUse` in a handler.
pub fn free_all() -> Result<(), Refusal> {
    let bundles = held(&BUNDLES).clone();
    bundles.into_iter().try_for_each(|bundle| {
        let _held = bundle.hold()?;
        // Another thread may have freed it meanwhile.
        if bundle.has_ended.load(Ordering::Relaxed) { Ok(()) } else { bundle.end() }
    })
}

impl Endpoint {
    /// Frees the endpoint.
    ///
    /// # Errors
    /// Returns `InUse` if one of its handlers runs.
    pub fn free(&'static self) -> Result<(), Refusal> {
        self.check_unused()?;
        self.bundle().remove(self);
        self.has_ended.store(true, Ordering::Relaxed);
        self.lobby.remove(&self.name);
        self.inbox.close();
        // The end of the job is told over its endpoint, also after AM_Terminate.
        if job::job_of(self).is_some() {
            return Ok(());
        }
        *self.link.borrow_mut() = None;
        // The endpoint itself stays, so that its handle can be checked.
        self.translations.take();
        self.peers.take();
        self.outgoing.take();
        Ok(())
    }

    /// Checks that the endpoint may be freed or moved.
    ///
    /// # Errors
    /// Returns `InUse` if one of its handlers runs.
    pub fn check_unused(&self) -> Result<(), Refusal> {
        // The handler of a message to the endpoint itself does not borrow the endpoint of the stack.
        if self.bundle().place.is_taken_by(self) || self.link.try_borrow_mut().is_err() {
            return Err(refuse(Code::InUse, "a handler of the endpoint runs"));
        }
        Ok(())
    }
}
