//! The calls without a reply, by transaction id, and the times at which they are sent again.
//!
//! The low bits of a transaction id name the place of the call in a table. The other bits count the calls, so
//! that a late reply to an earlier call of the same place is noticed. A server only compares ids (RFC 5531,
//! section 9).

use std::time::{Duration, Instant};

/// The time after which a call without a reply is sent again. RFC 8085 (section 3.1.1) and RFC 6298 (section
/// 2.1) name 1 s where the round trip is unknown. After each time the interval doubles (RFC 6298, section 5.5).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// The calls without a reply.
pub(super) struct Calls {
    /// The places. Their number is a power of two.
    places: Vec<Call>,
    /// The places that no call has.
    free: Vec<u32>,
    /// The bits of the next transaction id above those of the place.
    count: u32,
}

#[derive(Clone, Copy)]
struct Call {
    xid: u32,
    is_open: bool,
    timer: Option<Timer>,
}

/// The time at which a call is sent again. It runs from the first look at the clock after the call, so that
/// no call needs to read the clock.
#[derive(Clone, Copy)]
struct Timer {
    due: Instant,
    timeout: Duration,
}

impl Calls {
    /// Returns a table for at least `window` calls. Transaction ids count from `first`.
    pub(super) fn new(window: usize, first: u32) -> Self {
        let places = window.next_power_of_two();
        Self {
            places: vec![Call { xid: 0, is_open: false, timer: None }; places],
            free: (0..places as u32).collect(),
            count: first,
        }
    }

    /// Notes a new call. Returns its transaction id, or `None` if all places are taken.
    #[inline(always)]
    pub(super) fn open(&mut self) -> Option<u32> {
        let place = self.free.pop()?;
        let places = self.places.len() as u32;
        let xid = self.count.wrapping_mul(places) | place;
        self.count = self.count.wrapping_add(1);
        self.places[place as usize] = Call { xid, is_open: true, timer: None };
        Some(xid)
    }

    /// Notes a reply. Returns false if no call with this transaction id waits for one.
    #[inline(always)]
    pub(super) fn close(&mut self, xid: u32) -> bool {
        let place = xid & (self.places.len() as u32 - 1);
        let call = &mut self.places[place as usize];
        let is_awaited = call.is_open && call.xid == xid;
        if is_awaited {
            call.is_open = false;
            self.free.push(place);
        }
        is_awaited
    }

    /// Returns the transaction id of a call that has to be sent again at `now`, if there is one, and sets the
    /// time of its next transmission. Starts the timers of the calls without one.
    pub(super) fn next_overdue(&mut self, now: Instant) -> Option<u32> {
        for call in self.places.iter_mut().filter(|call| call.is_open) {
            let start = Timer { due: now + FIRST_TIMEOUT, timeout: FIRST_TIMEOUT };
            let timer = call.timer.get_or_insert(start);
            if timer.due <= now {
                timer.timeout *= 2;
                timer.due = now + timer.timeout;
                return Some(call.xid);
            }
        }
        None
    }

    /// Returns the memory of the table, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.places.len() * (size_of::<Call>() + size_of::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_matched_in_any_order_and_once() {
        let mut calls = Calls::new(3, u32::MAX - 2);
        let mut late = Vec::new();
        for _ in 0..10 {
            let open: Vec<u32> = std::iter::from_fn(|| calls.open()).collect();
            assert_eq!(open.len(), 4);
            for &xid in open.iter().rev() {
                assert!(calls.close(xid));
                assert!(!calls.close(xid), "a duplicate is no reply");
            }
            late.extend(open);
            assert!(late.iter().all(|&xid| !calls.close(xid)));
        }
    }

    #[test]
    fn a_call_is_sent_again_after_intervals_that_double() {
        let began = Instant::now();
        let at = |timeouts: u32| began + timeouts * FIRST_TIMEOUT;
        let mut calls = Calls::new(2, 0);
        let (first, second) = (calls.open().unwrap(), calls.open().unwrap());
        assert_eq!(calls.next_overdue(began), None);
        assert!(calls.close(second));
        let due: Vec<u32> = (0..16).filter(|&nth| calls.next_overdue(at(nth)) == Some(first)).collect();
        assert_eq!(due, [1, 3, 7, 15]);
        assert!(calls.close(first));
        assert_eq!(calls.next_overdue(at(99)), None);
    }
}
