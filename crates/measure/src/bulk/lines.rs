//! Straight lines over the sizes: segments of T(n), G, changes, and the classic fit.
//!
//! T(n) over all launches decides the segments. Each line of a segment is then fitted to the figures of each
//! launch by itself; its ends are medians over the launches.

use super::estimate::SizeEstimate;
use super::fit::{FitPoint, NOISE, SIZES_AT_LEAST, Straight, segments};
use super::launches::BulkLaunches;
use super::record::{Change, Classic, Linear, Segment, SizeFigures};
use crate::record::parameter::{PerByte, Status};
use crate::stats::Interval;

/// A slope needs a size that is at least so many times another one: the noise of g(n) is then five times as large in it.
const FAR_APART: f64 = 1.25;
/// A distance of g(n) from a line below this share of g(n) is noise, even if the interval is narrower.
const NOISE_OF_GAP: f64 = 0.002;

impl BulkLaunches<'_> {
    /// Returns the runs of sizes over which T(n) is a line: the first and the last index of each.
    pub(super) fn runs(&self, sizes: &[SizeFigures]) -> Vec<(usize, usize)> {
        let points: Vec<FitPoint> = sizes
            .iter()
            .map(|size| {
                let ns = size.T.value_ns.unwrap_or(f64::NAN);
                let half_width = size.T.ci_ns.map_or(0.0, Interval::half_width);
                FitPoint::new(size.size_bytes, ns, half_width.max(NOISE * ns))
            })
            .collect();
        let begins = segments(&points, SIZES_AT_LEAST);
        let ends = begins.iter().skip(1).copied().chain([sizes.len()]);
        begins.iter().zip(ends).map(|(&from, end)| (from, end - 1)).collect()
    }

    /// Returns the line through the figures of one launch at the indices `at`. The weight of a figure is the
    /// inverse square of T.
    fn straight(&self, launch: usize, at: &[usize], of: impl Fn(&SizeEstimate) -> f64) -> Option<Straight> {
        let estimates = &self.estimates[launch];
        let point = |&at: &usize| FitPoint::new(self.sizes[at], of(&estimates[at]), estimates[at].one_way);
        Straight::through(&at.iter().map(point).collect::<Vec<_>>())
    }

    /// Returns the slope of that line in each launch; `NaN` without a line.
    pub(super) fn slopes(&self, at: &[usize], of: impl Fn(&SizeEstimate) -> f64 + Copy) -> Vec<f64> {
        let slope = |launch| self.straight(launch, at, of).map_or(f64::NAN, |line| line.slope);
        (0..self.data.len()).map(slope).collect()
    }

    /// Returns the line with medians of its base and its slope over the launches.
    fn linear(&self, at: &[usize], of: impl Fn(&SizeEstimate) -> f64 + Copy) -> Linear {
        let lines: Vec<Straight> =
            (0..self.data.len()).filter_map(|launch| self.straight(launch, at, of)).collect();
        let (base, slope) =
            (self.over(lines.iter().map(|l| l.base)), self.over(lines.iter().map(|l| l.slope)));
        let median = Straight { base: base.value, slope: slope.value };
        let residual = |&at: &usize| {
            let off = self.figure(at, of).value - median.at(self.sizes[at] as f64);
            (off / self.figure(at, |e| e.one_way).value).abs()
        };
        Linear {
            base_ns: base.value,
            base_ci_ns: base.ci,
            slope_ns_per_byte: slope.value,
            slope_ci_ns_per_byte: slope.ci,
            largest_residual: at.iter().map(residual).fold(0.0, f64::max),
        }
    }

    /// Returns the segment of the sizes from index `from` to index `to`.
    pub(super) fn segment(&self, sizes: &[SizeFigures], from: usize, to: usize) -> Segment {
        let all: Vec<usize> = (from..=to).collect();
        let measured: Vec<usize> =
            all.iter().copied().filter(|&at| sizes[at].g.status == Status::Measured).collect();
        let straight = &measured[self.last_bend(sizes, &measured)..];
        // Sizes that lie near each other show the noise of g(n), not its slope.
        let straight = match straight {
            [.., last] if !self.are_far_apart(straight) => std::slice::from_ref(last),
            _ => straight,
        };
        Segment {
            from_bytes: self.sizes[from],
            to_bytes: self.sizes[to],
            G: self.gap_per_byte(sizes, straight, to),
            G_from_bytes: straight.first().map(|&at| self.sizes[at]),
            T: self.linear(&all, |e| e.one_way),
            o_s: self.linear(&all, |e| e.o_s),
            o_r: self.linear(&all, |e| e.o_r),
            steady: self.linear(&all, |e| e.steady),
            g: (straight.len() > 1).then(|| self.linear(straight, |e| e.steady)),
        }
    }

    /// Reports that the largest one of these sizes is far from the smallest one.
    fn are_far_apart(&self, at: &[usize]) -> bool {
        at.first()
            .zip(at.last())
            .is_some_and(|(&first, &last)| self.sizes[last] as f64 >= FAR_APART * self.sizes[first] as f64)
    }

    /// Returns the index in `measured` at which the last straight line of g(n) begins. From some size on
    /// another stage may set g(n), and a slope across that size is the slope of neither stage.
    fn last_bend(&self, sizes: &[SizeFigures], measured: &[usize]) -> usize {
        let point = |&at: &usize| {
            let g = &sizes[at].g;
            let ns = g.value_ns.unwrap_or(f64::NAN);
            let half_width = sizes[at].plateau.ci_ns.map_or(0.0, Interval::half_width);
            FitPoint::new(self.sizes[at], ns, half_width.max(NOISE_OF_GAP * ns))
        };
        let points: Vec<FitPoint> = measured.iter().map(point).collect();
        segments(&points, SIZES_AT_LEAST).last().copied().unwrap_or(0)
    }

    /// Returns G of a segment that ends at the index `last`, from the indices at which g is measured.
    fn gap_per_byte(&self, sizes: &[SizeFigures], measured: &[usize], last: usize) -> PerByte {
        let samples = self.data.len() as u64;
        match sizes[last].g.status {
            Status::Measured if measured.len() > 1 => {
                self.over(self.slopes(measured, |e| e.steady)).per_byte(Status::Measured, samples)
            }
            // The bytes may account for all of the time of such a message.
            Status::Measured | Status::UpperBound => {
                let bytes = self.sizes[last] as f64;
                let gap = |e: &SizeEstimate| match sizes[last].g.status {
                    Status::UpperBound => e.steady.max(e.bound),
                    _ => e.steady,
                };
                let shares = self.estimates.iter().map(|sizes| gap(&sizes[last]) / bytes);
                self.over(shares).per_byte(Status::UpperBound, samples)
            }
            Status::Unobservable => self.over([]).per_byte(Status::Unobservable, 0),
        }
    }

    /// Returns the departure of T(n) at the index `next` from the line of the run before it.
    pub(super) fn change(&self, sizes: &[SizeFigures], (from, to): (usize, usize), next: usize) -> Change {
        let line = self.linear(&(from..=to).collect::<Vec<_>>(), |e| e.one_way);
        let at_most_bytes = self.sizes[next];
        Change {
            above_bytes: self.sizes[to],
            at_most_bytes,
            extrapolated_ns: line.base_ns + line.slope_ns_per_byte * at_most_bytes as f64,
            measured_ns: sizes[next].T.value_ns.unwrap_or(f64::NAN),
        }
    }

    /// Fits T0 + n / R∞ to the time `of` all sizes by least squares without weights, as is common.
    #[allow(non_snake_case, reason = "the notation of the LogP papers")]
    pub(super) fn classic(&self, of: fn(&SizeEstimate) -> f64) -> Classic {
        let line = |sizes: &Vec<SizeEstimate>| {
            let points = self.sizes.iter().zip(sizes).map(|(&size, e)| FitPoint::new(size, of(e), 1.0));
            Straight::through(&points.collect::<Vec<_>>())
        };
        let lines: Vec<Straight> = self.estimates.iter().filter_map(line).collect();
        let T0 = self.over(lines.iter().map(|l| l.base));
        let slope = self.over(lines.iter().map(|l| l.slope));
        // A line that does not rise has no peak rate.
        let rises = slope.value > 0.0;
        let R_inf = rises.then(|| Self::rate(1.0, slope));
        // A launch whose line does not rise has no n_half, and then there is no interval.
        let each = lines.iter().map(|l| if l.slope > 0.0 { l.base / l.slope } else { f64::NAN });
        let n_half = self.over(each);
        let all_rise = lines.iter().all(|l| l.slope > 0.0);
        let measured = self.over(self.estimates.iter().map(|sizes| self.half_performance(sizes, of)));
        let small_bytes = self.sizes[0];
        Classic {
            T0_ns: T0.value,
            T0_ci_ns: T0.ci,
            n_half_bytes: (rises && n_half.value.is_finite()).then_some(n_half.value),
            n_half_ci_bytes: n_half.ci.filter(|_| rises && all_rise),
            n_half_measured_bytes: measured.value.is_finite().then_some(measured.value),
            n_half_measured_ci_bytes: measured.ci,
            small_bytes,
            small_predicted_ns: T0.value + slope.value * small_bytes as f64,
            small_measured_ns: self.figure(0, of).value,
            R_inf: R_inf.filter(|rate| rate.value_bytes_per_s.is_finite()),
        }
    }

    /// Returns the size at which n over the time `of` it first reaches half of its largest value, interpolated
    /// on a logarithmic scale between measured sizes. Returns `NaN` if the smallest size already reaches it.
    fn half_performance(&self, estimates: &[SizeEstimate], of: fn(&SizeEstimate) -> f64) -> f64 {
        let rates: Vec<f64> =
            self.sizes.iter().zip(estimates).map(|(&size, e)| size as f64 / of(e)).collect();
        let half = rates.iter().copied().fold(0.0, f64::max) / 2.0;
        let Some(at) = rates.iter().position(|&rate| rate >= half).filter(|&at| at > 0) else {
            return f64::NAN;
        };
        let share = (half / rates[at - 1]).ln() / (rates[at] / rates[at - 1]).ln();
        let (below, beyond) = (self.sizes[at - 1] as f64, self.sizes[at] as f64);
        below * (beyond / below).powf(share)
    }
}
