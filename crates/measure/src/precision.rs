//! Warnings about the precision of figures: too few launches, or intervals wider than asked for.

use crate::record::doubt::Doubt;
use crate::show::{Number, Percent};

/// Returns the warning that `launches` launches give no interval.
pub(crate) fn too_few_launches(launches: usize) -> Doubt {
    let text = format!("{launches} launches are too few for an interval at this confidence");
    Doubt::new("too_few_launches", text)
}

/// Returns the warning that `wide` of `all` figures have intervals wider than `precision`. The `widest` is
/// `excess` times as wide as asked for.
pub(crate) fn imprecise((wide, all): (usize, usize), precision: f64, excess: f64, widest: &str) -> Doubt {
    let text = format!(
        "{wide} of {all} figures are wider than the ±{} asked for; the widest, {} times that, is {widest}",
        Percent(precision),
        Number(excess)
    );
    Doubt::new("imprecise", text)
}
