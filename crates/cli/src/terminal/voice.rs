//! Messages on standard error besides errors: fewer with `-q`, more with `-v`, in colour on a terminal.

use anstyle::{AnsiColor, Style};
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

const QUIET: u8 = 0;
const NORMAL: u8 = 1;
const VERBOSE: u8 = 2;

/// The verbosity, set once from the command line.
static LEVEL: AtomicU8 = AtomicU8::new(NORMAL);

/// Labels at the beginning of a line, and their colours.
const LABELS: [(&str, AnsiColor); 5] = [
    ("error:", AnsiColor::Red),
    ("warning:", AnsiColor::Yellow),
    ("doubt:", AnsiColor::Yellow),
    ("interrupted:", AnsiColor::Yellow),
    ("note:", AnsiColor::Cyan),
];

/// Sets the verbosity from `-q` and `-v`.
pub fn set(is_quiet: bool, is_verbose: bool) {
    let level = match (is_quiet, is_verbose) {
        (true, _) => QUIET,
        (_, true) => VERBOSE,
        _ => NORMAL,
    };
    LEVEL.store(level, Ordering::Relaxed);
}

/// Reports whether only errors are printed.
pub fn is_quiet() -> bool {
    LEVEL.load(Ordering::Relaxed) == QUIET
}

/// Reports whether each step is printed.
pub fn is_verbose() -> bool {
    LEVEL.load(Ordering::Relaxed) == VERBOSE
}

/// Prints a line on standard error. A closed standard error is ignored.
pub fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", coloured(text));
}

/// Prints a note, unless `-q` is given.
pub fn note(text: &str) {
    if !is_quiet() {
        say(text);
    }
}

/// Prints a step of the work if `-v` is given.
pub fn detail(text: impl FnOnce() -> String) {
    if is_verbose() {
        say(&text());
    }
}

/// Colours the label at the beginning of a line.
pub fn coloured(line: &str) -> String {
    let label = LABELS.iter().find(|(label, _)| line.starts_with(label));
    match label {
        Some((label, colour)) => {
            let style = Style::new().bold().fg_color(Some((*colour).into()));
            format!("{style}{label}{style:#}{}", &line[label.len()..])
        }
        None => line.to_owned(),
    }
}

/// Colours a table: its first line, the rules, the heads of results and the letters of warnings.
pub fn painted(table: &str) -> String {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let letter = AnsiColor::Yellow.on_default();
    let mut text = String::new();
    for (nth, line) in table.lines().enumerate() {
        let is_head = nth == 0 || line.contains(" launches, ") && !line.starts_with(' ');
        let letters = line
            .find("  ")
            .filter(|&at| (1..=2).contains(&at) && line[..at].bytes().all(|byte| byte.is_ascii_lowercase()));
        text.push_str(&match letters {
            _ if is_head => format!("{bold}{line}{bold:#}"),
            _ if line.starts_with('─') => format!("{dim}{line}{dim:#}"),
            Some(at) => format!("{letter}{}{letter:#}{}", &line[..at], &line[at..]),
            None => line.to_owned(),
        });
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_painted_table_says_the_same() {
        let table = "netdyno 0.1.0\n\nam+shm  32 B, 20 of 27 launches, far  c\n  490 ns\n────\na  text\n";
        let painted = painted(table);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), table);
        assert!(painted.contains("\u{1b}[33ma\u{1b}[0m  text"), "{painted:?}");
    }

    #[test]
    fn the_label_of_a_line_is_coloured() {
        assert!(coloured("error: x").ends_with("\u{1b}[0m x"));
        assert_eq!(coloured("no error: x"), "no error: x");
    }
}
