//! Virtual time. A tick is a picosecond.

pub(super) const PS_PER_NS: f64 = 1e3;

/// Implements [`netdyno_measure::layer::Time`] for a type, by its field that simulates. With arguments, the
/// field's functions take those fields as arguments.
macro_rules! in_virtual_time {
    ($name:ident $(<$life:lifetime>)?, $simulated:ident $(, $argument:ident)?) => {
        impl netdyno_measure::layer::Time for $name $(<$life>)? {
            fn now(&mut self) -> u64 {
                self.$simulated.now_ps($(self.$argument)?)
            }

            fn tick_ns(&self) -> f64 {
                1.0 / $crate::sim::time::PS_PER_NS
            }

            fn work(&self, d_ns: f64) -> netdyno_measure::layer::Work {
                netdyno_measure::layer::Work((d_ns * $crate::sim::time::PS_PER_NS).round() as u64)
            }

            fn compute(&mut self, work: netdyno_measure::layer::Work) {
                self.$simulated.compute($(self.$argument,)? work.0);
            }

            fn is_virtual(&self) -> bool {
                true
            }
        }
    };
}
pub(super) use in_virtual_time;
