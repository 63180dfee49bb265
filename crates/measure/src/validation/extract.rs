//! The tables of the dials, computed from launches.

use super::data::{Block, Dialled, NAMES};
use super::record::{CrossTalk, Figure, Program, Row, Table, Validation};
use crate::figure::Figure as Median;
use crate::logp::data::LaunchData;
use crate::logp::extract::each_launch;
use crate::precision::Wanted;
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameters;
use crate::show::{Bytes, Percent, Time};
use crate::stats::median;

/// The tolerated error of a value: a share of the value, or this many nanoseconds.
const MAY_ERR: (f64, f64) = (0.01, 150.0);
/// The tolerated shift of a parameter that the dial must not change: a share of the parameter, or this many
/// nanoseconds.
const MAY_MOVE: (f64, f64) = (0.02, 100.0);
/// The index of g among the figures of a block.
const GAP: usize = 2;

/// A dial under validation.
#[derive(Clone, Debug)]
pub struct DialSubject {
    /// The dial, as on the command line.
    pub dial: String,
    /// The name of the parameter in its table.
    pub parameter: String,
    /// The index of the parameter among the figures of a block.
    pub figure: usize,
    /// Bytes of a message.
    pub size_bytes: usize,
    /// True if the dial adds to the parameter; otherwise it sets the parameter.
    pub adds: bool,
    /// The indices of the figures that the dial moves by the model.
    pub demanded: Vec<usize>,
}

impl Block {
    /// Computes the figures of a block from its signature.
    pub fn of(data: &LaunchData, wanted_ns: f64) -> Self {
        let [rtt, o_s, o_r, g] =
            each_launch(std::slice::from_ref(data)).first().copied().unwrap_or([f64::NAN; 4]);
        let seen = |ns: f64| ns.is_finite().then_some(ns);
        Self {
            wanted_ns,
            rtt_ns: seen(rtt),
            o_s_ns: seen(o_s),
            o_r_ns: seen(o_r),
            g_ns: seen(g),
            L_ns: seen(rtt / 2.0 - o_s - o_r),
            took_ns: data.took_ns,
        }
    }
}

/// A dialled block and the mean of the blocks of the link before and after it.
struct Pair {
    dialled: Block,
    link: [f64; NAMES.len()],
}

impl Pair {
    fn shift(&self, figure: usize) -> f64 {
        self.dialled.figures()[figure] - self.link[figure]
    }
}

/// Returns no figure that must be precise. More launches would narrow the intervals, but not make the tables
/// more accurate.
pub(crate) fn wanted(_parameters: &Parameters, _found: &Validation, _precision: f64) -> Vec<Wanted> {
    Vec::new()
}

/// Computes the tables and the cross-talk of all dials from launches.
pub fn extract(subjects: &[DialSubject], launches: Vec<Dialled>, confidence: f64) -> Validation {
    let tables: Vec<Table> =
        subjects.iter().enumerate().map(|(at, subject)| table(subject, at, &launches, confidence)).collect();
    let cross_talk =
        subjects.iter().zip(&tables).flat_map(|(subject, table)| cross_talk(subject, table)).collect();
    Validation { tables, cross_talk, programs: Vec::new(), launches }
}

/// Returns every dialled block of a dial with its two neighbours.
fn pairs(dial: usize, launches: &[Dialled]) -> Vec<Pair> {
    let of_dial = launches.iter().filter(|launch| launch.dial == dial);
    of_dial.flat_map(|launch| launch.blocks.windows(3).filter_map(pair)).collect()
}

fn pair(three: &[Block]) -> Option<Pair> {
    let [before, dialled, after] = three else { return None };
    if dialled.wanted_ns == 0.0 || before.wanted_ns != 0.0 || after.wanted_ns != 0.0 {
        return None;
    }
    let (before, after) = (before.figures(), after.figures());
    Some(Pair { dialled: *dialled, link: std::array::from_fn(|at| (before[at] + after[at]) / 2.0) })
}

fn table(subject: &DialSubject, dial: usize, launches: &[Dialled], confidence: f64) -> Table {
    let pairs = pairs(dial, launches);
    let mut wanted: Vec<f64> = pairs.iter().map(|pair| pair.dialled.wanted_ns).collect();
    wanted.sort_by(f64::total_cmp);
    wanted.dedup();
    let link: [f64; NAMES.len()] = std::array::from_fn(|at| median(pairs.iter().map(|pair| pair.link[at])));
    let link_figure = |(at, name): (usize, &&str)| Figure {
        name: (*name).into(),
        value_ns: finite(link[at]),
        ..Figure::default()
    };
    let rows = wanted.into_iter().map(|wanted_ns| {
        let of_row: Vec<&Pair> = pairs.iter().filter(|pair| pair.dialled.wanted_ns == wanted_ns).collect();
        row(subject, wanted_ns, &of_row, &link, confidence)
    });
    Table {
        dial: subject.dial.clone(),
        parameter: subject.parameter.clone(),
        size_bytes: subject.size_bytes,
        adds: subject.adds,
        link: NAMES.iter().enumerate().map(link_figure).collect(),
        rows: rows.collect(),
    }
}

fn row(subject: &DialSubject, wanted_ns: f64, pairs: &[&Pair], link: &[f64], confidence: f64) -> Row {
    let own = subject.figure;
    let observed = |pair: &&Pair| match subject.adds {
        true => pair.shift(own),
        false => pair.dialled.figures()[own],
    };
    let seen = Median::over(pairs.iter().map(observed), confidence);
    let error_ns = finite(seen.value - wanted_ns);
    let is_there_already = !subject.adds && link[own] > wanted_ns;
    let is_met = error_ns.filter(|_| !is_there_already).map(|error| within(error, wanted_ns, MAY_ERR));
    let figures = NAMES.iter().enumerate().map(|(at, name)| {
        let shift = Median::over(pairs.iter().map(|pair| pair.shift(at)), confidence);
        let is_demanded = subject.demanded.contains(&at);
        Figure {
            name: (*name).into(),
            value_ns: finite(median(pairs.iter().map(|pair| pair.dialled.figures()[at]))),
            shift_ns: finite(shift.value),
            shift_ci_ns: shift.ci,
            is_demanded,
            is_steady: finite(shift.value)
                .filter(|_| !is_demanded)
                .map(|shift| within(shift, link[at], MAY_MOVE)),
        }
    });
    Row {
        wanted_ns,
        observed_ns: finite(seen.value),
        ci_ns: seen.ci,
        error_ns,
        is_met,
        samples: pairs.len(),
        figures: figures.collect(),
    }
}

/// Completes the figures of an operation of a plain program from its times in pairs of launches, without
/// the dial and with it. If the dial `adds`, the observed value is the difference; otherwise it is the time
/// with the dial.
pub fn program(known: Program, pairs: &[[f64; 2]], adds: bool, confidence: f64) -> Program {
    let observed = |&[link, dialled]: &[f64; 2]| if adds { dialled - link } else { dialled };
    let seen = Median::over(pairs.iter().map(observed), confidence);
    let error_ns = finite(seen.value - known.wanted_ns);
    Program {
        link_ns: finite(median(pairs.iter().map(|&[link, _]| link))),
        observed_ns: finite(seen.value),
        ci_ns: seen.ci,
        error_ns,
        is_met: error_ns.map(|error| within(error, known.wanted_ns, MAY_ERR)),
        samples: pairs.len(),
        ..known
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn within(difference_ns: f64, of_ns: f64, (share, least_ns): (f64, f64)) -> bool {
    difference_ns.abs() <= (share * of_ns.abs()).max(least_ns)
}

/// Returns the slope of each parameter over the dial, by least squares through the origin. It omits values
/// that the link exceeds without the dial.
fn cross_talk<'a>(subject: &'a DialSubject, table: &'a Table) -> impl Iterator<Item = CrossTalk> + 'a {
    NAMES.iter().enumerate().map(move |(at, name)| {
        let points = table.rows.iter().filter(|row| row.is_met.is_some());
        let (mut moved, mut turned) = (0.0, 0.0);
        for row in points {
            // A dial that sets moves the parameter from the value of the link.
            let from = if subject.adds { 0.0 } else { table.link[GAP].value_ns.unwrap_or(0.0) };
            let by = row.wanted_ns - from;
            moved += by * row.figures[at].shift_ns.unwrap_or(f64::NAN);
            turned += by * by;
        }
        CrossTalk {
            dial: subject.dial.clone(),
            parameter: (*name).into(),
            slope: finite(moved / turned),
            is_demanded: subject.demanded.contains(&at),
        }
    })
}

/// Returns the warnings about the dials.
pub fn doubts(validation: &Validation) -> Vec<Doubt> {
    validation.tables.iter().flat_map(doubts_of).chain(doubts_of_programs(&validation.programs)).collect()
}

/// Returns the warnings about the dials under plain programs.
pub fn doubts_of_programs(programs: &[Program]) -> impl Iterator<Item = Doubt> + '_ {
    programs.iter().filter(|program| program.is_met == Some(false)).map(|program| {
        let noise = program.ci_ns.filter(|ci| ci.contains(program.wanted_ns)).is_some();
        let text = format!(
            "{} {} under {} of {}: {} was observed where {} was wanted{}",
            program.dial,
            program.setting,
            program.pattern,
            Bytes(program.size_bytes),
            Time(program.observed_ns.unwrap_or(f64::NAN)),
            Time(program.wanted_ns),
            if noise { ", which is noise: the interval has what was wanted" } else { "" }
        );
        Doubt::about("dial_off_in_program", &program.dial, text)
    })
}

fn doubts_of(table: &Table) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if table.rows.is_empty() {
        doubts.push(Doubt::about("no_blocks", &table.parameter, format!("{} was not measured", table.dial)));
    }
    for row in &table.rows {
        let wanted = Time(row.wanted_ns);
        if row.is_met == Some(false) {
            let noise = row.ci_ns.filter(|ci| ci.contains(row.wanted_ns)).is_some();
            let text = format!(
                "{} {wanted}: {} was observed, {} off{}",
                table.dial,
                Time(row.observed_ns.unwrap_or(f64::NAN)),
                Percent(row.error_ns.unwrap_or(f64::NAN) / row.wanted_ns),
                if noise { ", which is noise: the interval has what was wanted" } else { "" }
            );
            doubts.push(Doubt::about("dial_off", &table.parameter, text));
        }
        if row.is_met.is_none() {
            let text =
                format!("{} {wanted}: the link has more of its own, or nothing was measured", table.dial);
            doubts.push(Doubt::about("below_the_link", &table.parameter, text));
        }
        for figure in row.figures.iter().filter(|figure| figure.is_steady == Some(false)) {
            let noise = figure.shift_ci_ns.filter(|ci| ci.contains(0.0)).is_some();
            let text = format!(
                "{} {wanted} moves {} by {}{}",
                table.dial,
                figure.name,
                Time(figure.shift_ns.unwrap_or(f64::NAN)),
                if noise { ", which is noise: the interval has 0" } else { "" }
            );
            doubts.push(Doubt::about("cross_talk", &figure.name, text));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency() -> DialSubject {
        DialSubject {
            dial: "latency".into(),
            parameter: "L".into(),
            figure: 3,
            size_bytes: 8,
            adds: true,
            demanded: vec![2, 3, 4],
        }
    }

    /// A dialled link with o_s 100, o_r 200, L 700 and g 400.
    fn block(latency_ns: f64, wanted_ns: f64) -> Block {
        let rtt_ns = 2.0 * (100.0 + 200.0 + latency_ns);
        Block {
            wanted_ns,
            rtt_ns: Some(rtt_ns),
            o_s_ns: Some(100.0),
            o_r_ns: Some(200.0),
            g_ns: Some(400.0),
            L_ns: Some(latency_ns),
            took_ns: 0.0,
        }
    }

    fn launch(observed: &[(f64, f64)]) -> Dialled {
        let link = |nth: usize| block(700.0 + 10.0 * nth as f64, 0.0);
        let mut blocks = vec![link(0)];
        for (nth, (wanted, seen)) in observed.iter().enumerate() {
            // The link drifts, and the observed latency with it.
            blocks.push(block(705.0 + 10.0 * nth as f64 + seen, *wanted));
            blocks.push(link(nth + 1));
        }
        Dialled { blocks, ..Dialled::default() }
    }

    #[test]
    fn each_value_is_compared_with_its_neighbours() {
        let launches = vec![launch(&[(20_000.0, 20_100.0), (5_000.0, 5_400.0)]); 3];
        let found = extract(&[latency()], launches, 0.95);
        let table = &found.tables[0];
        let rows: Vec<_> = table.rows.iter().map(|row| (row.wanted_ns, row.error_ns, row.is_met)).collect();
        assert_eq!(rows, [(5_000.0, Some(400.0), Some(false)), (20_000.0, Some(100.0), Some(true))]);
        assert_eq!(table.rows[0].samples, 3);
        let steady: Vec<_> = table.rows[1].figures.iter().map(|figure| figure.is_steady).collect();
        assert_eq!(steady, [Some(true), Some(true), None, None, None]);
        let slope =
            |name: &str| found.cross_talk.iter().find(|c| c.parameter == name).unwrap().slope.unwrap();
        assert!((slope("L") - 1.0).abs() < 0.01 && (slope("rtt") - 2.0).abs() < 0.02);
        assert!(slope("o_s").abs() < 1e-9);
        let doubts = doubts(&found);
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        assert!(doubts[0].text.contains("latency 5 µs: 5.4 µs was observed, 8 % off"), "{}", doubts[0].text);
    }

    #[test]
    fn what_the_link_has_already_is_not_judged() {
        let gap = DialSubject {
            dial: "send-gap".into(),
            parameter: "g_s".into(),
            figure: 2,
            adds: false,
            demanded: vec![2],
            ..latency()
        };
        let with = |wanted_ns: f64, g_ns: f64| Block { g_ns: Some(g_ns), wanted_ns, ..block(700.0, 0.0) };
        let blocks = vec![
            with(0.0, 400.0),
            with(300.0, 400.0),
            with(0.0, 400.0),
            with(2000.0, 2010.0),
            with(0.0, 400.0),
        ];
        let found = extract(&[gap], vec![Dialled { blocks, ..Dialled::default() }], 0.95);
        let met: Vec<_> = found.tables[0].rows.iter().map(|row| row.is_met).collect();
        assert_eq!(met, [None, Some(true)]);
        assert!(doubts(&found).iter().any(|doubt| doubt.text.contains("the link has more of its own")));
    }

    #[test]
    fn a_program_is_compared_in_pairs() {
        let known = Program { pattern: "exchange".into(), wanted_ns: 10_000.0, ..Program::default() };
        // The link drifts by as much as the dial adds.
        let pairs = [[1000.0, 11_050.0], [5000.0, 15_020.0], [11_000.0, 21_090.0]];
        let added = program(known.clone(), &pairs, true, 0.95);
        assert_eq!(
            (added.link_ns, added.observed_ns, added.is_met),
            (Some(5000.0), Some(10_050.0), Some(true))
        );
        let doubled = program(known.clone(), &pairs.map(|[link, with]| [link, 2.0 * with]), true, 0.95);
        assert_eq!(doubled.is_met, Some(false));
        assert!(doubts_of_programs(&[added, doubled]).next().unwrap().text.contains("exchange"));
        assert_eq!(program(known, &[], true, 0.95).observed_ns, None);
    }

    #[test]
    fn nothing_measured_is_no_figure() {
        let found = extract(&[latency()], vec![Dialled::default()], 0.95);
        assert!(found.tables[0].rows.is_empty() && found.cross_talk.iter().all(|c| c.slope.is_none()));
        let nan = Block { o_r_ns: None, L_ns: None, ..block(700.0, 5_000.0) };
        let launches =
            vec![Dialled { blocks: vec![block(700.0, 0.0), nan, block(700.0, 0.0)], ..Dialled::default() }];
        let found = extract(&[latency()], launches, 0.95);
        assert_eq!(found.tables[0].rows[0].observed_ns, None);
    }
}
