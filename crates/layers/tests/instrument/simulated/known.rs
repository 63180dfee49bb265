//! The known values for messages of one size with small messages in the other direction.

use netdyno_measure::record::Limit;
use netdyno_protocol::sim::Truth;

/// Two terms of a maximum are not told apart if their ratio is below this.
const UNDECIDED: f64 = 1.06;
fn ns(ps: u64) -> f64 {
    ps as f64 / 1e3
}

/// The known values for messages of one size, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub one_way: f64,
    /// A request of the size and a reply of one byte.
    pub transfer: f64,
    pub o_s: f64,
    pub o_r: f64,
    pub o_poll: f64,
    /// The gap of the interface. [`Known::slowest_stage`] may be longer.
    pub g: f64,
    pub latency: f64,
    /// The requester's processor time per message.
    busy: f64,
    /// The replier's processor time per message. It is one of the stages of the layer.
    turnaround: f64,
    by_window: f64,
}

impl Known {
    /// Returns the values of requests of `bytes` with small replies.
    pub fn of(truth: &Truth, bytes: usize) -> Self {
        Self::between(truth, bytes, 1)
    }

    /// Returns the values of small requests with replies of `bytes`.
    pub fn of_get(truth: &Truth, bytes: usize) -> Self {
        Self::between(truth, 1, bytes)
    }

    fn between(truth: &Truth, request: usize, reply: usize) -> Self {
        let bytes = request.max(reply);
        let way =
            |bytes| ns(truth.o_s_of(bytes) + truth.l_of(bytes) + truth.data_of(bytes) + truth.o_r_of(bytes));
        Self {
            one_way: way(bytes),
            transfer: way(bytes) + way(1),
            o_s: ns(truth.o_s_of(request)),
            o_r: ns(truth.o_r_of(bytes)),
            o_poll: ns(truth.o_poll_ps),
            g: ns(truth.g_ps + truth.data_of(bytes)),
            latency: ns(truth.l_of(bytes) + truth.data_of(bytes)),
            busy: ns(truth.o_s_of(request) + truth.o_r_of(reply)),
            turnaround: ns(truth.o_r_of(request) + truth.o_s_of(reply)),
            by_window: (way(bytes) + way(1)) / truth.window as f64,
        }
    }

    /// Returns the time of the layer's slowest stage, in ns, which is measured as g.
    pub fn slowest_stage(&self) -> f64 {
        if self.processors_are_alike() { self.g } else { self.g.max(self.turnaround) }
    }

    fn processors_are_alike(&self) -> bool {
        (self.turnaround / self.busy - 1.0).abs() < 0.001
    }

    fn terms(&self) -> [(f64, Limit); 3] {
        let mut terms = [
            (self.slowest_stage(), Limit::Gap),
            (self.busy, Limit::Processor),
            (self.by_window, Limit::Window),
        ];
        terms.sort_by(|a, b| b.0.total_cmp(&a.0));
        terms
    }

    /// Returns the time per message of the steady state, in ns.
    pub fn steady(&self) -> f64 {
        self.g.max(self.turnaround).max(self.busy).max(self.by_window)
    }

    /// Returns the time per message of the second slowest stage, in ns.
    pub fn second_stage(&self) -> f64 {
        let mut stages = [self.g, self.turnaround, self.busy];
        stages.sort_by(f64::total_cmp);
        stages[1]
    }

    /// Returns the term that sets the steady state, and the time per message in ns, if one term clearly is
    /// the largest. If two processors differ by little, the slower one's queue fills too slowly: no burst is
    /// long enough to fill it.
    pub fn expected(&self) -> Option<(Limit, f64)> {
        let [(most, limit), (next, _), _] = self.terms();
        let differ_by_little = (0.8..1.25).contains(&(self.turnaround / self.busy));
        let is_undecided = limit != Limit::Window && differ_by_little && !self.processors_are_alike();
        let processors_set_it = most <= UNDECIDED * self.turnaround.max(self.busy);
        (most > UNDECIDED * next && !(is_undecided && processors_set_it)).then_some((limit, most))
    }
}
