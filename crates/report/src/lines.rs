//! Text for a terminal, in lines of limited width.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm, wrap};

/// The least width of a line.
pub const WIDTH_AT_LEAST: usize = 40;
/// The width from which columns stand side by side. Below it each figure has a line of its own.
pub const COLUMNS_FROM: usize = 80;

/// Text in lines of limited width.
pub struct Lines {
    /// The largest width of a line.
    pub width: usize,
    /// The text so far.
    pub text: String,
}

impl Lines {
    /// Returns an empty text with lines of `width`, and of at least [`WIDTH_AT_LEAST`].
    pub fn of(width: usize) -> Self {
        Self { width: width.max(WIDTH_AT_LEAST), text: String::new() }
    }

    /// Writes a line without wrapping.
    pub fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Writes an empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Writes a horizontal rule.
    pub fn rule(&mut self) {
        self.push(&"─".repeat(self.width));
    }

    /// Writes a row of a table, which is wrapped only if it is too long.
    pub fn row(&mut self, row: &str, first: &str, rest: &str) {
        if length(row) <= self.width {
            self.push(row);
        } else {
            self.wrapped(row.trim_start(), first, rest);
        }
    }

    /// Writes `text`, wrapped. The first line begins with `first`, the others with `rest`.
    pub fn wrapped(&mut self, text: &str, first: &str, rest: &str) {
        let options = Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(rest)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .wrap_algorithm(WrapAlgorithm::FirstFit);
        let text = with_units(text.trim_matches(' '));
        if !text.is_empty() {
            wrap(&text, options).iter().for_each(|line| self.push(&line.replace(JOINT, " ")));
        }
    }
}

/// Stands for the blank between a number and its unit, where no line ends.
const JOINT: char = '\u{a0}';

/// Returns the text with a [`JOINT`] before each unit, and without control characters. A record is a file that
/// others may have written, and its control characters must not reach the terminal.
fn with_units(text: &str) -> String {
    let mut joined = String::new();
    let mut is_number = false;
    for word in text.split(' ') {
        if !joined.is_empty() {
            joined.push(if is_number && is_unit(word) { JOINT } else { ' ' });
        }
        joined.extend(word.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }));
        is_number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    }
    joined
}

/// Reports whether a word begins with a unit.
fn is_unit(word: &str) -> bool {
    let end = word.find(|c: char| !c.is_alphanumeric() && c != '%').unwrap_or(word.len());
    ["ns", "µs", "ms", "s", "B", "%"].contains(&&word[..end])
}

/// Returns the number of characters of a text.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> String {
        let mut lines = Lines { width, text: String::new() };
        lines.wrapped(text, "a  ", "   ");
        lines.text
    }

    #[test]
    fn text_is_wrapped_between_words_and_under_itself() {
        assert_eq!(wrapped("one two three", 10), "a  one two\n   three\n");
        assert_eq!(wrapped("abcdefghijkl", 10), "a  abcdefg\n   hijkl\n");
        assert_eq!(wrapped("", 10), "");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(wrapped("at 71.2 ns; so", 11), "a  at\n   71.2 ns;\n   so\n");
        assert_eq!(wrapped("2 nsa", 7), "a  2\n   nsa\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(wrapped("\u{1b}[31mred", 20), "a  \u{fffd}[31mred\n");
    }
}
