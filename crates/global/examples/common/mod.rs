//! The frame of every program: the command line, the part that is timed, the check, and the line of the result.

mod arguments;
mod timing;

pub use arguments::Arguments;
pub use timing::{Part, timed};

use netdyno_global::{Combination, World};
use netdyno_job::place;
use netdyno_measure::show;
use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// The reason why a program ends without a result.
pub type Failure = Box<dyn Error>;

/// A program that runs at every rank.
pub struct Program {
    /// The name of the example.
    pub name: &'static str,
    /// The meaning of its size, in the plural, as in `keys`.
    pub size: &'static str,
    /// The largest size.
    pub largest: u64,
    /// What the rate counts, as in `keys`.
    pub work: &'static str,
    /// The values of `--by`, the default first; empty if there is one way only.
    pub ways: &'static [&'static str],
    /// Runs the program at this rank.
    pub run: fn(&mut World, &Arguments) -> Result<Outcome, Failure>,
}

/// The outcome of a program at a rank.
pub struct Outcome {
    /// The part that was timed, which is the same at all ranks.
    pub part: Part,
    /// The work of all ranks in that part.
    pub work: u64,
    /// Whether this rank's part of the result is that of the oracle.
    pub is_right: bool,
}

/// Runs a program as its command line says. The exit code is 2 for a bad command line, and 1 if the program fails or
/// its result is wrong.
pub fn main(program: &Program) -> ExitCode {
    let arguments = match Arguments::parse(program, std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{}", arguments::usage(program));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            // All ranks have the same command line.
            if !place::has_elder_here() {
                report(&error);
            }
            return ExitCode::from(2);
        }
    };
    match run(program, &arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Writes an error to standard error as one line, in one piece: other ranks write there, too, and a launcher may end
/// this one meanwhile.
fn report(error: &impl Display) {
    // Without a standard error there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("error: {error}\n").as_bytes());
}

/// Runs a program and returns whether its result is right. Rank 0 prints the result.
fn run(program: &Program, arguments: &Arguments) -> Result<bool, Failure> {
    let mut world = World::launched(arguments.config)?;
    let Outcome { part, work, is_right } = (program.run)(&mut world, arguments)?;
    let mut wrong = [u64::from(!is_right)];
    world.all_reduce(Combination::Sum, &mut wrong)?;
    let (rank, ranks, [wrong]) = (world.rank(), world.ranks(), wrong);
    world.finish()?;
    let Program { name, size, work: of_work, .. } = program;
    let size =
        format!("{name}: {} {size} at {}", arguments.size, show::counted(ranks as usize, "rank", "ranks"));
    if rank != 0 {
        return Ok(wrong == 0);
    }
    if wrong > 0 {
        report(&format!("{size}: the result of {wrong} of them is wrong: report this with the command line"));
        return Ok(false);
    }
    let rate = show::per_second(work as f64 / part.seconds());
    println!("{size}: right, in {}, {of_work} at {rate}", show::time(part.seconds() * 1e9));
    if arguments.counts {
        println!("{}", part.in_words());
    }
    Ok(true)
}
