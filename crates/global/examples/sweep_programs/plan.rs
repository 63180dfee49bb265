//! The programs that are swept, with their sizes, and the values of each dial.

use netdyno_global::am::Dial;
use netdyno_measure::show::round_time;

/// A program with its arguments.
#[derive(Clone, Copy)]
pub struct Subject {
    /// Its name in the table.
    pub title: &'static str,
    /// The name of the example.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// Whether bulk gets are its messages: their owners do not count the answers.
    pub gets_in_bulk: bool,
}

/// So small that a run takes a few milliseconds at most: on a machine with other programs, longer ones lose their
/// processors. matmul uses UDP, because gets over shared memory are not dialled.
const SUBJECTS: [Subject; 8] = [
    messages("radix_sort", "radix_sort", &["200", "--wire", "shm"]),
    messages("radix_sort by digit", "radix_sort", &["2000", "--by", "digit", "--wire", "shm"]),
    messages("sample_sort", "sample_sort", &["1000", "--wire", "shm"]),
    messages("histogram", "histogram", &["200", "--by", "fetch_add", "--wire", "shm"]),
    messages("histogram by add", "histogram", &["1000", "--by", "add", "--wire", "shm"]),
    messages("em3d get", "em3d", &["100", "--by", "get", "--wire", "shm"]),
    messages("em3d put", "em3d", &["100", "--by", "put", "--wire", "shm"]),
    Subject { title: "matmul", program: "matmul", arguments: &["128", "--wire", "udp"], gets_in_bulk: true },
];

const fn messages(title: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Subject {
    Subject { title, program, arguments, gets_in_bulk: false }
}

/// Returns the subjects, or those of one program.
pub fn subjects(only: Option<&str>) -> Vec<Subject> {
    SUBJECTS.into_iter().filter(|subject| only.is_none_or(|only| only == subject.program)).collect()
}

/// A dial and the values that it takes, in nanoseconds or nanoseconds per byte.
pub struct Swept {
    /// The dial.
    pub dial: Dial,
    /// The values.
    pub values: &'static [f64],
}

/// The dials. Those that add begin with almost nothing: the dials take some 100 ns of processor time for each message,
/// whatever they are set to, which the link as it is does not have.
pub const SWEPT: [Swept; 6] = [
    Swept { dial: Dial::Latency, values: &[1.0, 2e3, 4e3, 6e3, 8e3, 10e3] },
    Swept { dial: Dial::SendOverhead, values: &[1.0, 400.0, 800.0, 1200.0, 1600.0, 2000.0] },
    Swept { dial: Dial::RecvOverhead, values: &[1.0, 400.0, 800.0, 1200.0, 1600.0, 2000.0] },
    Swept { dial: Dial::SendGap, values: &[1000.0, 1500.0, 2000.0, 2500.0, 3000.0] },
    Swept { dial: Dial::RecvGap, values: &[1000.0, 1500.0, 2000.0, 2500.0, 3000.0] },
    Swept { dial: Dial::GapPerByte, values: &[4.0, 8.0, 12.0, 16.0, 20.0] },
];

impl Swept {
    /// Reports whether the values add to those of the link. Gaps can be set only.
    pub fn adds(&self) -> bool {
        !self.dial.is_gap()
    }

    /// Returns the setting of the dial's option.
    pub fn setting(&self, value: f64) -> String {
        format!("{}{value}{}", self.sign(), self.dial.unit_ns())
    }

    /// Returns a value as a table shows it.
    pub fn shown(&self, value: f64) -> String {
        let value = if self.dial.is_per_byte() { format!("{value} ns/B") } else { round_time(value) };
        format!("{}{value}", self.sign())
    }

    fn sign(&self) -> char {
        if self.adds() { '+' } else { '=' }
    }
}
