//! The descriptor at which a thread of the program sleeps until a message comes.

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A descriptor that becomes readable when a message comes, when a timer is due, or when another thread calls
/// [`Sleep::wake`].
#[derive(Debug)]
pub struct Sleep {
    all: OwnedFd,
    timer: OwnedFd,
    signal: OwnedFd,
}

impl Sleep {
    /// Returns a descriptor that also becomes readable with each of these.
    pub fn new(others: [BorrowedFd<'_>; 2]) -> io::Result<Self> {
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let signal = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        for one in others.into_iter().chain([timer.as_fd(), signal.as_fd()]) {
            epoll::add(&all, one, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(Self { all, timer, signal })
    }

    /// Begins a sleep of this time at most. A thread that `is_alone` forgets an old signal.
    pub fn begin(&self, most: Duration, is_alone: bool) -> io::Result<()> {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would mean for ever.
        let most = most.clamp(Duration::from_nanos(1), Duration::from_secs(3600));
        let it_value = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        let setting = Itimerspec { it_interval: none, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        if is_alone {
            // An error says that there was no signal.
            let _ = io::read(&self.signal, &mut [0; 8]);
        }
        Ok(())
    }

    /// Ends a sleep.
    pub fn wake(&self) {
        // An error says that it has ended.
        let _ = io::write(&self.signal, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Sleep {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all.as_fd()
    }
}
