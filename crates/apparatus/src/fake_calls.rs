//! Fake functions of a provider: what they record, what they answer, and the samples that they are called with.

use core::ffi::{c_char, c_int};
use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;

/// The name of a function of a table, and a call of it with sample arguments.
pub type Call = (&'static str, Box<dyn Fn() -> i64>);

thread_local! {
    pub static CALLS: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    /// The samples that functions are called with, by type; null for types without one.
    pub static SAMPLES: RefCell<HashMap<TypeId, *mut ()>> = RefCell::default();
}

/// The answer of a fake function.
pub trait FakeAnswer {
    const ANSWER: Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl FakeAnswer for $number {
            const ANSWER: Self = 0;
        }
        impl Number for $number {
            fn number(self) -> i64 {
                self as i64
            }
        }
    )*};
}

/// An answer of any type, as a number.
pub trait Number {
    fn number(self) -> i64;
}

numbers!(c_int, isize, u64);

impl FakeAnswer for *const c_char {
    const ANSWER: Self = ptr::null();
}

impl Number for *const c_char {
    fn number(self) -> i64 {
        0
    }
}

/// A sample argument.
pub trait Sample {
    fn sample() -> Self;
}

impl Sample for u64 {
    fn sample() -> Self {
        0
    }
}

impl Sample for c_int {
    fn sample() -> Self {
        0
    }
}

impl Sample for usize {
    fn sample() -> Self {
        1
    }
}

impl<T: 'static> Sample for *mut T {
    fn sample() -> Self {
        SAMPLES.with_borrow(|samples| samples.get(&TypeId::of::<T>()).map_or(ptr::null_mut(), |it| it.cast()))
    }
}

impl<T: 'static> Sample for *const T {
    fn sample() -> Self {
        <*mut T>::sample().cast_const()
    }
}

/// Records a call of a fake function.
pub fn called<R: FakeAnswer>(name: &'static str) -> R {
    CALLS.with_borrow_mut(|calls| calls.push(name));
    R::ANSWER
}
