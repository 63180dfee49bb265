//! Reads the time stamp counter.

/// Name of the counter of this architecture, as written to records. Miri cannot read a hardware counter.
pub const SOURCE: &str = if cfg!(miri) {
    "clock_gettime"
} else if cfg!(target_arch = "x86_64") {
    "tsc"
} else if cfg!(target_arch = "aarch64") {
    "cntvct"
} else {
    "clock_gettime"
};

/// Reads the counter. All earlier instructions complete before the reading, and no later instruction starts
/// before it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn now() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // Without the first fence the counter is read while earlier loads are still pending. Without the second,
    // the timed code overlaps with the reading for some nanoseconds.
    // SAFETY: both instructions exist on every x86-64 and access no memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Reads the counter. All earlier instructions complete before the reading, and no later instruction starts
/// before it.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub fn now() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user code read the virtual counter, and the instructions have no other effect.
    unsafe {
        core::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// Reads the counter without ordering, at half the cost of [`now`], for times that need no nanosecond
/// accuracy.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn glance() -> u64 {
    // SAFETY: the instruction exists on every x86-64 and accesses no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the counter without ordering, at half the cost of [`now`], for times that need no nanosecond
/// accuracy.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub fn glance() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user code read the virtual counter, and the instruction has no other effect.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, nomem, preserves_flags));
    }
    ticks
}

/// Reads the clock, like [`now`].
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn glance() -> u64 {
    now()
}

/// Reads the monotonic clock in nanoseconds, on architectures without a known counter.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Waits until all earlier instructions have completed, before any later instruction starts.
#[inline(always)]
pub fn serialise() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction exists on every x86-64 and accesses no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction exists on every aarch64 and accesses no memory.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
}
