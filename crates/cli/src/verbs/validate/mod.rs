//! `netdyno validate`: checks the dials, as in tables 1 to 6 of León et al. 2002.

mod plain;

use crate::campaign::doubts::over_time_doubt;
use crate::campaign::ending::conclude;
use crate::campaign::method::{Method, Terms};
use crate::campaign::{Campaign, Conditions};
use crate::job::ranks::Ranks;
use crate::options::bench::Measuring;
use crate::options::headings::WHAT;
use crate::options::once::each_once;
use crate::options::output::OutputArgs;
use crate::program::apparatus::{Apparatus, folder};
use crate::program::ledger::Ledger;
use crate::program::route::RouteArgs;
use crate::records::output::Sink;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use crate::verbs::Examples;
use crate::verbs::validate::plain::Plain;
use clap::Args;
use netdyno_apparatus_fi::page::{CURRENT, DialSetting, FOLDER, NAME, Plan as Page};
use netdyno_layers::catalogue::Layer;
use netdyno_layers::options::DialOptions;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Doubt, Found, Parameter, Parameters, PerByte, Record, Status};
use netdyno_measure::stats::{median, median_interval_of_sorted, sorted};
use netdyno_measure::task::{Data, Task};
use netdyno_measure::validation::data::Block;
use netdyno_measure::validation::extract::{DialSubject, doubts, doubts_of_programs, extract};
use netdyno_measure::validation::record::Program;
use netdyno_measure::validation::{Dialled, DialledPlan};
use netdyno_protocol::dial::parameters::Dials;
use netdyno_protocol::dial::setting::Setting;
use netdyno_protocol::dial::table::{Dial, Effect, LinkEnd};
use netdyno_protocol::random::Random;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

/// Size of a message, in bytes, as in the paper; for the gap per byte a larger one.
const SIZE_BYTES: usize = 8;
const BULK_BYTES: usize = 4088;
/// Maximum time of a block, in nanoseconds. The launch's share of the time may allow less; the patterns have
/// a minimum of their own.
const BLOCK_NS: f64 = 150e6;

/// Indices of the parameters in the figures of a block.
const O_S: usize = 0;
const O_R: usize = 1;
const GAP: usize = 2;
const LATENCY: usize = 3;
const RTT: usize = 4;

/// Help of --launches, which here counts the launches of each dial.
const LAUNCHES: &str = "Start this many fresh process pairs for each dial";

/// The examples of the help.
pub const EXAMPLES: &[Examples] = &[(
    "validate",
    [
        ("netdyno validate --over am+shm", "check the dials of am+shm"),
        ("netdyno validate --launcher 'mpiexec -n {n}'", "check those under an MPI"),
        ("netdyno validate --over am+udp --dial latency", "check one dial"),
    ],
)];

/// Check the dials: turn each to several values and measure every parameter
#[derive(Debug, Args)]
#[command(mut_arg("size", |size| size.hide(true)))]
#[command(mut_arg("launches", |launches| launches.default_value("3").help(LAUNCHES).long_help(LAUNCHES)))]
#[command(mut_arg("max_time", |time| time.default_value("10min")))]
pub struct ValidateArgs {
    /// Turn its dials (see `netdyno layers`)
    ///
    /// Those of mpi, am+shm or am+udp.
    #[arg(long, value_name = "LAYER", default_value = "mpi", help_heading = WHAT)]
    pub over: Layer,

    /// Turn these dials [default: all]
    #[arg(long, value_name = "DIAL[,DIAL…]", value_delimiter = ',', value_parser = dial, help_heading = WHAT)]
    dial: Vec<Dial>,

    /// Turn them to the paper's values
    ///
    /// 0.5, 1, 2, 5 and 10 to 120 µs in steps of 10 (León et al. 2002).
    #[arg(long, help_heading = WHAT, hide_short_help = true)]
    full: bool,

    /// How to measure.
    #[command(flatten)]
    pub measuring: Measuring,

    /// Where and in which form the result goes.
    #[command(flatten)]
    output: OutputArgs,

    /// How messages go.
    #[command(flatten)]
    route: RouteArgs,
}

fn dial(text: &str) -> Result<Dial, String> {
    let names = Dial::ALL.map(Dial::name).join(", ");
    Dial::ALL.into_iter().find(|dial| dial.name() == text).ok_or_else(|| format!("use {names}"))
}

/// Validates the dials and writes the result.
pub fn run(args: &ValidateArgs, ranks: Option<Rc<Ranks>>) -> Result<(), Fault> {
    if !args.over.takes_dials() && args.over != Layer::Mpi {
        return Err(Fault::BadInput(format!(
            "{} has no dials: use mpi, am+shm, am+udp or am+xdp",
            args.over
        )));
    }
    each_once("--dial", &args.dial, Dial::to_string)?;
    if args.measuring.size.is_some() {
        let text = "validate chooses the size of messages for each dial: leave --size away";
        return Err(Fault::BadInput(text.into()));
    }
    if args.over.takes_dials()
        && let Some(option) = args.route.first_chosen()
    {
        let text = format!("{option} is for a program over MPI: leave it away for {}", args.over);
        return Err(Fault::BadInput(text));
    }
    let method = Validating::new(args);
    if args.measuring.waits().len() > 1 {
        return Err(Fault::BadInput("validate waits one way: name one of them with --wait".into()));
    }
    let mut measuring = args.measuring.clone();
    measuring.launches = measuring.launches.saturating_mul(method.grids.len() as u16);
    let page = method.page(args);
    let sink = Sink::open(&args.output)?;
    let max_time = measuring.max_time;
    if !args.over.takes_dials() && measuring.launcher.is_some() {
        // The plain programs have the other half.
        measuring.max_time /= 2;
    }
    let mut campaign =
        Campaign::new(Box::new(method), &[args.over], &Conditions::default(), &measuring, ranks)?;
    if args.over.takes_dials() {
        return of_ours(&mut campaign, &page, &sink);
    }
    // A netdyno that was itself started by a launcher cannot start another one.
    let plain =
        args.measuring.launcher.as_ref().map(|launcher| Plain::new(launcher, &args.route)).transpose()?;
    let apparatus = Apparatus::prepare(&page, args.route.provider())?;
    campaign.put(&apparatus.variables());
    // A launcher may have waited in a queue before.
    let began = Instant::now();
    let mut record = campaign.run()?;
    let ledger = Ledger::of(&apparatus.accounts()?);
    let was_ever_in_force = !ledger.ranks.is_empty() && ledger.is_silent().is_none();
    if !was_ever_in_force && let Some(error) = record.failed {
        return Err(Fault::Failed(error));
    }
    let is_whole = record.interrupted.is_none() && record.failed.is_none();
    // The ranks of an interrupted launch did not finish, so a hook that was not in force proves nothing.
    if let Some(text) = ledger.failing().or_else(|| ledger.is_silent()).filter(|_| is_whole) {
        return Err(Fault::Failed(text));
    }
    let (programs, failure) = match plain.filter(|_| is_whole) {
        Some(plain) => of_programs(&plain, args, began + max_time, &mut record)?,
        None => (Vec::new(), None),
    };
    // The one of the campaign is about its half.
    record.doubts.retain(|doubt| doubt.name != "over_time");
    record.doubts.extend(over_time_doubt(began.elapsed().as_secs_f64() / max_time.as_secs_f64()));
    for result in &mut record.results {
        result.doubts.extend(doubts_of_programs(&programs));
        if let Found::Validate(found) = &mut result.found {
            found.programs.clone_from(&programs);
        }
        let carrier = ledger.ranks.first().map_or("none", |rank| rank.carrier);
        result.label = result.label.take().or_else(|| apparatus.provider().map(str::to_owned));
        result.doubts.extend(ledger.doubts(None).into_iter().map(|text| Doubt::new("apparatus", text)));
        result.dials = Some(format!("each in turn, departure times travel by {carrier}"));
    }
    write(&mut record, &sink)?;
    failure.map_or(Ok(()), |text| Err(Fault::Failed(text)))
}

/// Measures plain MPI programs over dials. An error or a signal must not lose what was measured before: the record has a
/// doubt then. Also returns what failed.
fn of_programs(
    plain: &Plain<'_>,
    args: &ValidateArgs,
    end: Instant,
    record: &mut Record,
) -> Result<(Vec<Program>, Option<String>), Fault> {
    let Measuring { launches, confidence, .. } = args.measuring;
    let interrupt = Interrupt::catch()?;
    let mut programs = Vec::new();
    let measured = plain.measure(&args.dial, launches.into(), confidence, end, &interrupt, &mut programs);
    let why = match measured {
        Ok(true) => return Ok((programs, None)),
        Ok(false) => {
            let text = format!(
                "the time was up before each plain MPI program had run {launches} times: give more with --max-time"
            );
            record.doubts.push(Doubt::new("fewer_launches", text));
            return Ok((programs, None));
        }
        Err(Fault::Interrupted(signal)) => {
            record.interrupted = Some(signal);
            record.doubts.push(Doubt::new(
                "interrupted",
                format!("signal {signal} interrupted the plain MPI programs"),
            ));
            return Ok((programs, None));
        }
        Err(Fault::BadInput(text) | Fault::Failed(text) | Fault::Ended(_, text)) => text,
        Err(other) => return Err(other),
    };
    let text = format!("not all plain MPI programs were measured: {why}");
    record.doubts.push(Doubt::new("programs_failed", text.clone()));
    Ok((programs, Some(text)))
}

/// Writes the record. Its figures of the link are those of small messages.
fn write(record: &mut Record, sink: &Sink) -> Result<(), Fault> {
    record.results.iter_mut().for_each(|result| result.size_bytes = SIZE_BYTES);
    conclude(record, sink.write(record))
}

/// Validates the dials of netdyno's own stack, which needs no hook.
fn of_ours(campaign: &mut Campaign, page: &Page, sink: &Sink) -> Result<(), Fault> {
    let folder = folder(page)?;
    campaign.set_dials(&DialOptions {
        settings: page.settings.iter().map(|setting| setting.dials).collect(),
        word: Some((folder.path().join(NAME), CURRENT)),
        profile: None,
    });
    campaign.put(&[(FOLDER, folder.path().as_os_str().to_owned())]);
    write(&mut campaign.run()?, sink)
}

/// A dial and its values, in nanoseconds or nanoseconds per byte.
struct Grid {
    dial: Dial,
    values: Vec<f64>,
    /// Index of the setting with the first value.
    first_setting: u32,
}

impl Grid {
    fn of(dial: Dial, full: bool, first_setting: u32) -> Self {
        let us = |values: &[f64]| values.iter().map(|us| us * 1e3).collect::<Vec<f64>>();
        let tens: Vec<f64> = (1..=12).map(|ten| f64::from(ten) * 1e4).collect();
        let values = match (dial.effect(), full) {
            // These are 1000, 500, … MB/s.
            (Effect::GapPerByte, false) => vec![4.0, 8.0, 16.0],
            (Effect::GapPerByte, true) => vec![2.0, 4.0, 8.0, 16.0, 32.0],
            (_, true) => [us(&[0.5, 1.0, 2.0, 5.0]), tens].concat(),
            (Effect::Gap(_), false) => us(&[20.0, 40.0, 80.0]),
            (_, false) => us(&[2.0, 10.0, 50.0]),
        };
        Self { dial, values, first_setting }
    }

    fn size_bytes(&self) -> usize {
        if self.dial.is_per_byte() { BULK_BYTES } else { SIZE_BYTES }
    }

    /// Returns the expected effect on one message at a value of the dial.
    fn wanted_ns(&self, value: f64) -> f64 {
        if self.dial.is_per_byte() { value * (BULK_BYTES - 1) as f64 } else { value }
    }

    fn setting(&self, value: f64) -> Setting {
        if self.adds() { Setting::Add(value) } else { Setting::Set(value) }
    }

    /// Reports whether the values are added to the link. A gap is set, because the link's own is not known.
    fn adds(&self) -> bool {
        !self.dial.is_gap()
    }

    fn subject(&self) -> DialSubject {
        let (figure, demanded) = match self.dial.effect() {
            Effect::Latency => (LATENCY, vec![LATENCY, RTT, GAP]),
            Effect::Overhead(LinkEnd::Sender) => (O_S, vec![O_S, RTT, GAP]),
            Effect::Overhead(LinkEnd::Receiver) => (O_R, vec![O_R, RTT, GAP]),
            Effect::Gap(_) => (GAP, vec![GAP]),
            Effect::GapPerByte => (GAP, vec![GAP, LATENCY, RTT]),
        };
        let of_a_long_message = if self.dial.is_per_byte() { "'" } else { "" };
        DialSubject {
            dial: self.dial.name().into(),
            parameter: format!("{}{of_a_long_message}", self.dial.symbol()),
            figure,
            size_bytes: self.size_bytes(),
            adds: self.adds(),
            demanded,
        }
    }
}

/// The method: each launch measures one dial, in turn.
struct Validating {
    grids: Vec<Grid>,
}

impl Validating {
    fn new(args: &ValidateArgs) -> Self {
        let mut grids = Vec::new();
        let mut setting = 1;
        for dial in Dial::ALL {
            if args.dial.is_empty() || args.dial.contains(&dial) {
                let grid = Grid::of(dial, args.full, setting);
                setting += grid.values.len() as u32;
                grids.push(grid);
            }
        }
        Self { grids }
    }

    /// Returns the dial settings: the unmodified link, and then every value of every dial.
    fn page(&self, args: &ValidateArgs) -> Page {
        let turned = self.grids.iter().flat_map(|grid| {
            let setting = |value: &f64| DialSetting {
                dials: Dials::NONE.with(grid.dial, grid.setting(*value)),
                ..DialSetting::default()
            };
            grid.values.iter().map(setting)
        });
        args.route.plan(std::iter::once(DialSetting::default()).chain(turned).collect())
    }
}

impl Method for Validating {
    fn task(&self, terms: &Terms, _before: &[Data]) -> Task {
        let &Terms { launch, share_ns, precision, confidence, seed, .. } = terms;
        let dial = launch % self.grids.len();
        let grid = &self.grids[dial];
        let mut order: Vec<usize> = (0..grid.values.len()).collect();
        shuffle(&mut order, seed);
        let mut blocks = vec![(0, 0.0)];
        for at in order {
            blocks.push((grid.first_setting + at as u32, grid.wanted_ns(grid.values[at])));
            blocks.push((0, 0.0));
        }
        Task::Validate(DialledPlan {
            launch,
            dial,
            size_bytes: grid.size_bytes(),
            block_budget_ns: BLOCK_NS.min(share_ns / blocks.len() as f64),
            blocks,
            precision,
            confidence,
            seed,
        })
    }

    /// The effect of a dial is a difference between blocks of one launch, and each launch measures another
    /// dial.
    fn is_stratified(&self) -> bool {
        false
    }

    fn read(&self, launches: &[Data], terms: &Terms) -> Option<Reading<Found>> {
        let launches: Vec<Dialled> = Data::of_verb(launches);
        let parameters = of_link(&self.grids, &launches, terms.confidence);
        let subjects: Vec<DialSubject> = self.grids.iter().map(Grid::subject).collect();
        let found = extract(&subjects, launches, terms.confidence);
        let doubts = doubts(&found);
        Some(Reading { parameters, found: found.into(), doubts })
    }
}

/// Shuffles the order of the values, so that it differs from launch to launch.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut random = Random::new(seed);
    for at in (1..order.len()).rev() {
        order.swap(at, (random.bits() % (at as u64 + 1)) as usize);
    }
}

/// Returns the parameters of the unmodified link for small messages.
fn of_link(grids: &[Grid], launches: &[Dialled], confidence: f64) -> Parameters {
    let is_small =
        |launch: &&Dialled| grids.get(launch.dial).is_some_and(|grid| grid.size_bytes() == SIZE_BYTES);
    let small = launches.iter().filter(is_small);
    let per_launch: Vec<Vec<Block>> = small
        .map(|launch| launch.blocks.iter().copied().filter(|block| block.wanted_ns == 0.0).collect())
        .collect();
    let parameter = |figure: usize, status: Status| {
        let of_launch = |blocks: &Vec<Block>| median(blocks.iter().map(|block| block.figures()[figure]));
        let values = sorted(per_launch.iter().map(of_launch).filter(|value| value.is_finite()));
        let value_ns = Some(median(values.iter().copied())).filter(|value| value.is_finite());
        Parameter {
            status: if value_ns.is_some() { status } else { Status::Unobservable },
            value_ns,
            ci_ns: median_interval_of_sorted(&values, confidence),
            quantiles_ns: BTreeMap::new(),
            samples: per_launch.iter().map(|blocks| blocks.len() as u64).sum(),
            launches: values.len(),
        }
    };
    Parameters {
        rtt: parameter(RTT, Status::Measured),
        o_s: parameter(O_S, Status::Measured),
        o_r: parameter(O_R, Status::Measured),
        o_poll: unobservable(),
        // Short signatures do not show the limit that sets their plateau.
        g: parameter(GAP, Status::UpperBound),
        L: parameter(LATENCY, Status::Measured),
        G: PerByte {
            status: Status::Unobservable,
            value_ns_per_byte: None,
            ci_ns_per_byte: None,
            quantiles_ns_per_byte: BTreeMap::new(),
            samples: 0,
            launches: 0,
        },
    }
}

fn unobservable() -> Parameter {
    Parameter {
        status: Status::Unobservable,
        value_ns: None,
        ci_ns: None,
        quantiles_ns: BTreeMap::new(),
        samples: 0,
        launches: 0,
    }
}
