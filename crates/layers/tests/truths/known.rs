//! What a truth says of messages of one size.

use netdyno_measure::record::Limit;
use netdyno_protocol::sim::Truth;

/// Terms of a maximum so near to each other are not told apart.
const UNDECIDED: f64 = 1.06;

fn ns(ps: u64) -> f64 {
    ps as f64 / 1e3
}

/// The parameters of messages of one size that small replies answer.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub one_way: f64,
    pub o_s: f64,
    pub o_r: f64,
    pub o_poll: f64,
    /// What g is read as: the slowest stage of the layer, the replier's processor among them.
    pub g: f64,
    pub latency: f64,
    busy: f64,
    turnaround: f64,
    by_window: f64,
}

impl Known {
    pub fn of(truth: &Truth, bytes: usize) -> Self {
        let way =
            |bytes| ns(truth.o_s_of(bytes) + truth.l_of(bytes) + truth.data_of(bytes) + truth.o_r_of(bytes));
        let busy = ns(truth.o_s_of(bytes) + truth.o_r_of(1));
        let turnaround = ns(truth.o_r_of(bytes) + truth.o_s_of(1));
        let stage = ns(truth.g_ps + truth.data_of(bytes));
        let are_alike = (turnaround / busy - 1.0).abs() < 0.001;
        Self {
            one_way: way(bytes),
            o_s: ns(truth.o_s_of(bytes)),
            o_r: ns(truth.o_r_of(bytes)),
            o_poll: ns(truth.o_poll_ps),
            g: if are_alike { stage } else { stage.max(turnaround) },
            latency: ns(truth.l_of(bytes) + truth.data_of(bytes)),
            busy,
            turnaround,
            by_window: (way(bytes) + way(1)) / truth.window as f64,
        }
    }

    /// Time per message of a stream.
    pub fn plateau(&self) -> f64 {
        self.g.max(self.busy).max(self.by_window)
    }

    /// What sets the plateau, where one term clearly is the largest.
    pub fn expected_limit(&self) -> Option<Limit> {
        let mut terms =
            [(self.g, Limit::Gap), (self.busy, Limit::Processor), (self.by_window, Limit::Window)];
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Of two processors that differ by little the slower one's queue fills so slowly that no
        // burst sees the end of it.
        let processors_differ_by_little = (0.8..1.25).contains(&(self.turnaround / self.busy))
            && (self.turnaround / self.busy - 1.0).abs() >= 0.001
            && terms[0].0 <= UNDECIDED * self.turnaround.max(self.busy);
        (terms[0].0 > UNDECIDED * terms[1].0 && !processors_differ_by_little).then_some(terms[0].1)
    }
}
