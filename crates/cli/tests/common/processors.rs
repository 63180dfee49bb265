//! Which tests run at once. Two concurrent measurements take each other's processors.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// So many tests run beside each other: most of the time they wait.
const PLACES: usize = 4;

static USERS: Mutex<Users> = Mutex::new(Users { alone: false, beside: 0, waiting: 0 });
static CHANGED: Condvar = Condvar::new();

/// The tests that have the processors, and those that wait for a place.
struct Users {
    alone: bool,
    beside: usize,
    waiting: usize,
}

/// A test's share of the processors.
pub struct Share {
    is_alone: bool,
}

/// Waits until no other test of this binary needs the processors. A test that runs beside others goes first. So if all
/// tests start at once, no place stays empty while they wait for each other.
pub fn alone() -> Share {
    let mut all = when(users(), |users| !users.alone && users.beside + users.waiting == 0);
    all.alone = true;
    Share { is_alone: true }
}

/// Waits for a place beside other tests. What such a test asserts holds on a busy machine.
pub fn beside() -> Share {
    let mut all = users();
    all.waiting += 1;
    let mut all = when(all, |users| !users.alone && users.beside < PLACES);
    all.waiting -= 1;
    all.beside += 1;
    Share { is_alone: false }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut users = users();
        if self.is_alone {
            users.alone = false;
        } else {
            users.beside -= 1;
        }
        CHANGED.notify_all();
    }
}

// A test that failed leaves nothing behind, so a poisoned lock is ignored.
fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn when(users: MutexGuard<'static, Users>, may_go: impl Fn(&Users) -> bool) -> MutexGuard<'static, Users> {
    CHANGED.wait_while(users, |users| !may_go(users)).unwrap_or_else(PoisonError::into_inner)
}
