//! The suites of Active Messages and Virtual Interfaces, over every transport. A test is named after its
//! transport: `am::over_udp::loss::…`.

#![allow(clippy::unwrap_used, reason = "a test")]

/// Makes tests of functions that take a transport: tests!(family over TRANSPORT => suite: function, …; …).
macro_rules! tests {
    ($family:ident over $transport:ident => $($suite:ident: $($test:ident),+;)+) => {$(
        mod $suite {
            $(
                #[test]
                fn $test() {
                    let transport = &crate::common::transport::$transport;
                    if transport.is_ready(stringify!($test)) {
                        crate::$family::$suite::$test(transport);
                    }
                }
            )+
        }
    )+};
}

mod am;
mod common;
mod vi;
