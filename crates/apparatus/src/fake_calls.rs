//! Fake tables of functions of a provider: what their functions record and answer, and the samples that they are
//! called with.

use crate::abi::{AtomicOps, CntrOps, CqOps, DomainOps, FabricOps, MsgOps, Ops, RmaOps, TaggedOps};
use core::ffi::{c_char, c_int, c_uint};
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

macro_rules! samples {
    ($($number:ty: $sample:literal),*) => {$(
        impl Sample for $number {
            fn sample() -> Self {
                $sample
            }
        }
    )*};
}

samples!(u64: 0, c_int: 0, c_uint: 0, usize: 1);

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

/// The name of a function, as a type.
pub trait Name {
    const NAME: &'static str;
}

/// The type of a function in a table.
pub trait Function: Copy {
    /// Returns a function that records that it was called.
    fn fake<N: Name>() -> Self;

    /// Calls the function with the sample that [`SAMPLES`] holds for each of its types.
    ///
    /// # Safety
    /// The samples fit the function.
    unsafe fn call(self) -> i64;
}

/// Defines fakes of functions with so many arguments and fewer.
macro_rules! functions {
    () => {};
    ($first:ident $($argument:ident)*) => {
        impl<R: FakeAnswer + Number, $first: Sample, $($argument: Sample),*> Function
            for unsafe extern "C" fn($first, $($argument),*) -> R
        {
            fn fake<N: Name>() -> Self {
                unsafe extern "C" fn fake<N: Name, R: FakeAnswer, $first, $($argument),*>(_: $first, $(_: $argument),*) -> R {
                    crate::fake_calls::called(N::NAME)
                }
                fake::<N, R, $first, $($argument),*>
            }

            unsafe fn call(self) -> i64 {
                // SAFETY: the caller says that the samples fit.
                unsafe { self($first::sample(), $($argument::sample()),*) }.number()
            }
        }
        functions!($($argument)*);
    };
}

functions!(A B C D E F G H I J K L M N0 O P);

/// A table of functions.
pub trait Table: Sized {
    /// Returns the table of a fake provider.
    fn fake() -> Self;

    /// Returns calls of all functions that the hook might replace.
    fn calls(table: *const Self) -> Vec<Call>;
}

macro_rules! tables {
    ($($table:ident: $($member:ident)*;)*) => {$(
        impl Table for $table {
            fn fake() -> Self {
                // SAFETY: functions of libfabric may be null.
                let mut table: Self = unsafe { std::mem::zeroed() };
                table.size = size_of::<Self>();
                $({
                    struct Here;
                    impl Name for Here {
                        const NAME: &'static str = concat!(stringify!($table), ".", stringify!($member));
                    }
                    table.$member = Some(Function::fake::<Here>());
                })*
                table
            }

            fn calls(table: *const Self) -> Vec<Call> {
                vec![$((
                    concat!(stringify!($table), ".", stringify!($member)),
                    // SAFETY: the tests keep the table and the arguments alive for the call.
                    Box::new(move || unsafe { (*table).$member.unwrap().call() }),
                )),*]
            }
        }
    )*};
}

tables! {
    Ops: close bind control ops_open;
    FabricOps: domain passive_ep eq_open wait_open trywait domain2;
    DomainOps: av_open cq_open endpoint scalable_ep cntr_open poll_open stx_ctx srx_ctx query_atomic query_collective
        endpoint2;
    CqOps: read readfrom readerr sread sreadfrom signal strerror;
    CntrOps: read readerr add set wait;
    MsgOps: recv recvv recvmsg send sendv sendmsg inject senddata injectdata;
    TaggedOps: recv recvv recvmsg send sendv sendmsg inject senddata injectdata;
    RmaOps: read readv readmsg write writev writemsg inject writedata injectdata;
    AtomicOps: write writev writemsg inject readwrite readwritev readwritemsg compwrite compwritev compwritemsg;
}
