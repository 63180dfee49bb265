//! Reading the counter that counts time.

/// The counter of this architecture, as named in records. Miri interprets no instructions that read one.
pub const SOURCE: &str = if cfg!(miri) {
    "clock_gettime"
} else if cfg!(target_arch = "x86_64") {
    "tsc"
} else if cfg!(target_arch = "aarch64") {
    "cntvct"
} else {
    "clock_gettime"
};

/// The counter, after everything before it in the program has been executed and before
/// anything after it is.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn now() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // Without the first fence the counter is read while earlier loads still wait; without
    // the second the first nanoseconds of what is timed run in the shadow of the reading.
    // SAFETY: both instructions are part of every x86-64 and touch no memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// The counter, after everything before it in the program has been executed and before
/// anything after it is.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub fn now() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user code read the virtual counter; nothing else is touched.
    unsafe {
        core::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// The counter at about this moment: half the price, for what need not be timed to the nanosecond.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub fn glance() -> u64 {
    // SAFETY: the instruction is part of every x86-64 and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter at about this moment: half the price, for what need not be timed to the nanosecond.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub fn glance() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user code read the virtual counter; nothing else is touched.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, nomem, preserves_flags));
    }
    ticks
}

/// The counter at about this moment.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn glance() -> u64 {
    now()
}

/// Nanoseconds of the monotonic clock, where no counter is known.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Lets everything before it finish before anything after it begins.
#[inline(always)]
pub fn serialise() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction is part of every x86-64 and touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction is part of every aarch64 and touches no memory.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
}
