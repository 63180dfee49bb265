//! The command line of every program.

use super::Program;
use netdyno_global::Config;
use netdyno_global::am::{Dial, Dials, Faults, VaryingSetting, Wait, Wire};
use std::net::SocketAddr;

/// The arguments of a program.
#[derive(Clone, Copy, Debug)]
pub struct Arguments {
    /// The size.
    pub size: u64,
    /// The seed of all that is random.
    pub seed: u64,
    /// The index of the value of `--by`.
    pub way: usize,
    /// Whether rank 0 prints the counts of the part that was timed.
    pub counts: bool,
    /// The configuration of a rank.
    pub config: Config,
}

/// Returns the usage of a program.
pub fn usage(program: &Program) -> String {
    let Program { name, size, ways, .. } = program;
    let by = if ways.is_empty() { String::new() } else { format!(" [--by {}]", ways.join("|")) };
    let dials =
        Dial::ALL.map(|dial| format!("\n  --{dial} {}", if dial.is_per_byte() { "+1ns/B" } else { "+20us" }));
    format!(
        "usage: mpiexec -n 4 {name} SIZE [SEED]{by}, where SIZE is the number of {size}\n  \
         --wire shm|udp|xdp  set one transport for all ranks\n  \
         --bind ADDRESS      have the socket at this IP address\n  \
         --loss 0.01         lose this share of the datagrams\n  \
         --faults FAULTS     loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001 of the datagrams\n  \
         --wait WAY          spin, yield or sleep while nothing arrives\n  \
         --counts            print the messages of the part that is timed{}",
        dials.concat()
    )
}

impl Arguments {
    /// Parses the words behind the name of the program. Returns `None` if they ask for help.
    pub fn parse(program: &Program, mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut numbers = Vec::new();
        let mut arguments = Self { size: 0, seed: 1, way: 0, counts: false, config: Config::default() };
        let mut am = arguments.config.am;
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                numbers.push(word);
                continue;
            };
            match name {
                "help" => return Ok(None),
                "counts" => {
                    arguments.counts = true;
                    continue;
                }
                _ => {}
            }
            let value =
                words.next().ok_or_else(|| format!("--{name} has no value: give one, or see --help"))?;
            match name {
                "by" if !program.ways.is_empty() => arguments.way = one_of(name, &value, program.ways)?,
                "wire" => {
                    let wire = one_of(name, &value, &["shm", "udp", "xdp"])?;
                    arguments.config.wire = Some([Wire::Shm, Wire::Udp, Wire::Xdp][wire]);
                }
                "wait" => am.wait = value.parse::<Wait>()?,
                "bind" => {
                    let address = value.parse().map_err(|_| {
                        format!("--bind '{value}' is no IP address: use one of this host, as in 10.0.0.1")
                    })?;
                    am.bind = SocketAddr::new(address, 0);
                }
                "loss" => am.faults = faulty(&format!("loss={value}"))?,
                "faults" => am.faults = faulty(&value)?,
                _ => am.dials = dialled(am.dials, name, &value)?,
            }
        }
        if am.faults != Faults::NONE && !matches!(arguments.config.wire, Some(Wire::Udp | Wire::Xdp)) {
            return Err("--loss and --faults concern datagrams: add --wire udp".into());
        }
        arguments.size = number(program, numbers.first())?;
        if let Some(seed) = numbers.get(1) {
            arguments.seed =
                seed.parse().map_err(|_| format!("'{seed}' is no seed: use a whole number, as in 7"))?;
        }
        if let Some(more) = numbers.get(2) {
            return Err(format!("'{more}' is one number too many: give a size and a seed"));
        }
        arguments.config.am = am.seed(arguments.seed);
        Ok(Some(arguments))
    }
}

/// Returns the size of the program.
fn number(program: &Program, text: Option<&String>) -> Result<u64, String> {
    let Program { name, size, largest, .. } = program;
    let example = format!("as in {name} {}", 1000.min(*largest));
    let Some(text) = text else { return Err(format!("there is no number of {size}: give one, {example}")) };
    let number = text.parse().ok().filter(|number| number <= largest);
    number.ok_or_else(|| format!("'{text}' is no number of {size}: use 0 to {largest}, {example}"))
}

/// Returns the index of a value among the values of an option.
fn one_of(name: &str, value: &str, values: &[&str]) -> Result<usize, String> {
    let found = values.iter().position(|known| *known == value);
    found.ok_or_else(|| format!("--{name} '{value}' is not known: use {}", values.join(" or ")))
}

fn faulty(faults: &str) -> Result<Faults, String> {
    faults.parse::<Faults>().map_err(|error| error.to_string())
}

/// Returns the dials with the one of this name set.
fn dialled(dials: Dials, name: &str, value: &str) -> Result<Dials, String> {
    let dial = Dial::ALL.into_iter().find(|dial| dial.name() == name);
    let dial = dial.ok_or_else(|| format!("there is no option --{name}: see --help"))?;
    let setting = VaryingSetting::parse(dial, value).map_err(|error| error.to_string())?;
    Ok(dials.with_varying(dial, setting))
}
