//! Text for a terminal, in lines of limited width.

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
        // A record is a file that others may have written: its control characters must not reach the
        // terminal.
        self.text.extend(line.trim_end().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
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
        let mut line = String::from(first);
        let mut is_fresh = true;
        for (gap, word) in words(text) {
            let mut word: &str = word;
            let gap = if is_fresh { "" } else { gap };
            if length(&line) + length(gap) + length(word) > self.width && !is_fresh {
                self.push(&line);
                line = rest.into();
            } else {
                line.push_str(gap);
            }
            // A word longer than a line is cut.
            while length(&line) + length(word) > self.width {
                let room = self.width - length(&line);
                let cut = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
                line.push_str(&word[..cut]);
                self.push(&line);
                line = rest.into();
                word = &word[cut..];
            }
            line.push_str(word);
            is_fresh = false;
        }
        if !is_fresh {
            self.push(&line);
        }
    }
}

/// Returns the words of a text, each with the blanks before it. A number stays with its unit.
fn words(text: &str) -> Vec<(&str, &str)> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c != ' ') {
        let (gap, from) = rest.split_at(start);
        let mut end = from.find(' ').unwrap_or(from.len());
        if from.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && let Some(unit) =
                ["ns", "µs", "ms", "s", "B", "%"].iter().find(|unit| is_unit(&from[end..], unit))
        {
            end += 1 + unit.len();
            // Punctuation stays with the unit.
            end += from[end..].find(' ').unwrap_or(from.len() - end);
        }
        words.push((gap, &from[..end]));
        rest = &from[end..];
    }
    words
}

/// Reports whether `text` continues with a blank and `unit` as a word.
fn is_unit(text: &str, unit: &str) -> bool {
    let after = text.strip_prefix(' ').and_then(|text| text.strip_prefix(unit));
    after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
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
        assert_eq!(wrapped("xx 71.2 ns; so", 13), "a  xx\n   71.2 ns;\n   so\n");
        assert_eq!(wrapped("2 nsa", 7), "a  2\n   nsa\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(wrapped("\u{1b}[31mred", 20), "a  \u{fffd}[31mred\n");
    }
}
