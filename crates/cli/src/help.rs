//! The help texts that all verbs share, added to the definition of the options.
//!
//! `-h` shows the examples and the essential options and fits a terminal of 80 by 24; `--help` shows all.

use crate::verbs::{GROUPS, examples};
use clap::Command;
use clap::builder::StyledStr;
use clap::builder::styling::{AnsiColor, Style, Styles};
use std::fmt::Write;

/// Maximum columns of the help, the same as of the tables.
const COLUMNS: usize = 80;
/// The examples come first. [`groups`] lists the commands in place of clap.
const TEMPLATE: &str = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";
const ROOT_TEMPLATE: &str = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{options}{after-help}";

/// The exit codes. A test compares them with the README.
const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "done"),
    ("1", "measuring failed, or `compare --fail-on` found its limit exceeded"),
    ("2", "bad input: nothing was measured"),
    ("128 + n", "signal n ended it: 130 is Ctrl-C, 143 is TERM"),
    ("130", "a signal after three launches of each layer, with the result written"),
];

/// The exit codes of `run`, `sweep` and `launch` only. Otherwise these pass on the program's own status.
const RUNNER_CODES: &[(&str, &str)] = &[
    ("125", "netdyno failed: bad input, or the dials were not in force"),
    ("126", "the program cannot be executed"),
    ("127", "the program is not found"),
];

/// Adds examples, headings and exit codes to the definition of the command.
pub fn dress(command: Command) -> Command {
    let short = StyledStr::from(format!("{}\n\n{}", examples_of("").unwrap_or_default(), short_groups()));
    let long = format!("{}\n\n{}", examples_of("").unwrap_or_default(), groups(&command));
    let command = dress_verb(command, "")
        .help_template(ROOT_TEMPLATE)
        .before_help(short)
        .before_long_help(unwrapped(&long))
        .max_term_width(COLUMNS)
        .styles(styles())
        // The short help fits a terminal.
        .mut_arg("size", |size| size.hide_short_help(true));
    // clap's own help of the `help` command would say less.
    command.mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        let verb = dress_verb(verb, &name);
        verb.mut_subcommands(|action| {
            let name = format!("{name} {}", action.get_name());
            dress_verb(action, &name)
        })
    })
}

/// Adds the texts of one verb; `name` is spelled as on the command line.
fn dress_verb(command: Command, name: &str) -> Command {
    let mut command = command.help_template(TEMPLATE);
    if let Some(examples) = examples_of(name) {
        command = command.before_help(unwrapped(&examples));
    }
    let full = if name.is_empty() { "netdyno --help".to_owned() } else { format!("netdyno {name} --help") };
    command
        .after_help(format!("`{full}` shows all options and the exit codes."))
        .after_long_help(exit_codes())
        .mut_args(|arg| {
            let (help, long_help) = (arg.get_help().map(kept), arg.get_long_help().map(kept));
            // A negative number is a bad value, not an unknown option.
            let takes_numbers = arg.get_long().is_some() && arg.get_action().takes_values();
            let mut arg = if takes_numbers { arg.allow_negative_numbers(true) } else { arg };
            arg = if let Some(help) = help { arg.help(help) } else { arg };
            if let Some(help) = long_help { arg.long_help(help) } else { arg }
        })
}

fn kept(text: &StyledStr) -> StyledStr {
    unwrapped(&text.ansi().to_string())
}

/// Keeps a literal `{n}`, which clap takes for a line break. A style reset inside the braces hides it from
/// clap. Terminals show `{n}`; without a terminal clap removes styles.
fn unwrapped(text: &str) -> StyledStr {
    StyledStr::from(text.replace("{n}", &format!("{{{}n}}", anstyle::Reset.render())))
}

fn examples_of(name: &str) -> Option<String> {
    let examples = examples(name);
    let widest = examples.iter().map(|(command, _)| command.chars().count()).max()?;
    let header = styles();
    let header = header.get_header();
    let mut text = format!("{header}Examples:{header:#}");
    for (command, what) in examples {
        let _ = write!(text, "\n  {command:widest$}  # {what}");
    }
    Some(text)
}

/// Returns the names of the verbs.
fn short_groups() -> String {
    let styles = styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let widest = GROUPS.iter().map(|(group, _)| group.len()).max().unwrap_or(0);
    let mut text = format!("{header}Commands:{header:#}");
    for (group, verbs) in GROUPS {
        let indent = 2 + widest + 2;
        let lines = in_lines(verbs, COLUMNS - indent);
        let line = |verbs: &Vec<&str>| {
            verbs.iter().map(|verb| format!("{literal}{verb}{literal:#}")).collect::<Vec<_>>().join(", ")
        };
        let lines: Vec<String> = lines.iter().map(line).collect();
        let _ = write!(text, "\n  {group:widest$}  {}", lines.join(&format!(",\n{:indent$}", "")));
    }
    text
}

/// Divides names into lines of at most `width` characters, with commas behind the names.
fn in_lines<'a>(names: &[&'a str], width: usize) -> Vec<Vec<&'a str>> {
    let mut lines: Vec<Vec<&str>> = Vec::new();
    let mut at = width;
    for name in names {
        let len = name.len() + ", ".len();
        match lines.last_mut() {
            Some(line) if at + len <= width + 1 => line.push(name),
            _ => {
                at = 0;
                lines.push(vec![name]);
            }
        }
        at += len;
    }
    lines
}

/// Returns the verbs, each with its purpose.
fn groups(command: &Command) -> String {
    let styles = styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let blocks = GROUPS.iter().map(|(group, verbs)| {
        let mut text = format!("{header}{group}:{header:#}");
        for verb in *verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = write!(text, "\n  {literal}{verb:12}{literal:#}  {about}");
        }
        text
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn exit_codes() -> StyledStr {
    let styles = styles();
    let header = styles.get_header();
    let mut text = format!("{header}Exit codes:{header:#}");
    let list = |text: &mut String, codes: &[(&str, &str)]| {
        for (code, what) in codes {
            let _ = write!(text, "\n  {code:7}  {what}");
        }
    };
    list(&mut text, EXIT_CODES);
    let _ = write!(text, "\n`run`, `sweep` and `launch` pass the program's own status, except for:");
    list(&mut text, RUNNER_CODES);
    StyledStr::from(text)
}

fn styles() -> Styles {
    let bold = Style::new().bold();
    Styles::styled()
        .header(bold.fg_color(Some(AnsiColor::Green.into())))
        .usage(bold.fg_color(Some(AnsiColor::Green.into())))
        .literal(bold.fg_color(Some(AnsiColor::Cyan.into())))
        .placeholder(AnsiColor::Cyan.on_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cli;
    use crate::verbs::EXAMPLES;
    use std::fs;

    /// Each line but the last ends with a comma; a line leaves room for one.
    #[test]
    fn names_fill_lines_and_leave_room_for_commas() {
        assert_eq!(in_lines(&["ab", "cd", "ef"], 11), [vec!["ab", "cd", "ef"]]);
        assert_eq!(in_lines(&["ab", "cd", "ef"], 7), [vec!["ab", "cd"], vec!["ef"]]);
        assert_eq!(in_lines(&["abcdef", "g"], 3), [vec!["abcdef"], vec!["g"]]);
        assert!(in_lines(&[], 3).is_empty());
    }

    #[test]
    fn every_visible_verb_is_listed_and_has_examples() {
        let definition = Cli::definition();
        let visible = definition.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(visible, listed);
        assert!(visible.iter().all(|verb| examples(verb).len() == 3));
    }

    #[test]
    fn every_example_is_understood() {
        for (command, _) in EXAMPLES.iter().copied().flatten().flat_map(|(_, examples)| examples) {
            let command = command.split_once("netdyno").unwrap().1;
            let command = command.split([';', '>', '&']).next().unwrap();
            let words = shlex::split(&format!("netdyno{command}")).unwrap();
            if let Err(error) = Cli::definition().try_get_matches_from(words) {
                assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp, "{command}: {error}");
            }
        }
    }

    #[test]
    fn the_readme_has_the_same_exit_codes() {
        let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
        for (code, what) in EXIT_CODES.iter().chain(RUNNER_CODES) {
            assert!(readme.contains(&format!("| {code} | {what} |")), "{code}: {what}");
        }
    }
}
