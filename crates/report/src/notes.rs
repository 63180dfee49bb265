//! Doubts as notes. Each has a letter, which stands beside the figure that it concerns.

use netdyno_measure::record::{Doubt, Record};

/// A doubt with its letter and its layer.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    number: usize,
    /// The doubt.
    pub doubt: &'a Doubt,
    /// The index of its record, and of its layer in that record; `None` for a doubt about the whole run.
    place: (usize, Option<usize>),
}

impl Note<'_> {
    /// Returns its letter: a to z, then aa, ab and so on.
    pub fn mark(&self) -> String {
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        match self.number / 26 {
            0 => letter(self.number).to_string(),
            rest => format!("{}{}", letter((rest - 1) % 26), letter(self.number)),
        }
    }

    /// Returns the index of its layer.
    pub fn layer(&self) -> Option<usize> {
        self.place.1
    }

    /// Returns the figure that it is about, with its operation.
    pub fn figure(&self) -> Option<String> {
        let Doubt { about, operation, .. } = self.doubt;
        let about = about.as_ref()?;
        Some(operation.as_ref().map_or_else(|| about.clone(), |operation| format!("{about} of {operation}")))
    }

    /// Returns the index of its record.
    pub fn record(&self) -> usize {
        self.place.0
    }
}

/// All doubts of some records, lettered in the order of the page: first those about a run as a whole, then
/// layer by layer.
#[derive(Clone, Debug)]
pub struct Notes<'a>(Vec<Note<'a>>);

impl<'a> Notes<'a> {
    /// Letters the doubts of `records`.
    pub fn of(records: &'a [Record]) -> Self {
        let doubts = records.iter().enumerate().flat_map(|(at, record)| {
            let run = record.doubts.iter().map(move |doubt| ((at, None), doubt));
            let layers = record.results.iter().enumerate();
            run.chain(layers.flat_map(move |(layer, result)| {
                result.doubts.iter().map(move |doubt| ((at, Some(layer)), doubt))
            }))
        });
        Self(doubts.enumerate().map(|(number, (place, doubt))| Note { number, doubt, place }).collect())
    }

    /// Returns all notes.
    pub fn all(&self) -> &[Note<'a>] {
        &self.0
    }

    /// Returns the notes about a parameter of a layer: about one operation if it is named, otherwise about any.
    pub fn about(
        &self,
        record: usize,
        layer: usize,
        parameter: &str,
        operation: Option<&str>,
    ) -> Vec<&Note<'a>> {
        let is_of_another = |of: &str| operation.is_some_and(|operation| operation != of);
        let wanted = |note: &&Note<'a>| {
            note.place == (record, Some(layer))
                && note.doubt.about.as_deref() == Some(parameter)
                && !note.doubt.operation.as_deref().is_some_and(is_of_another)
        };
        self.0.iter().filter(wanted).collect()
    }

    /// Returns the notes about a layer that concern none of `parameters`.
    pub fn elsewhere(&self, record: usize, layer: usize, parameters: &[&str]) -> Vec<&Note<'a>> {
        let shown = |about: &str| parameters.contains(&about);
        let wanted = |note: &&Note<'a>| {
            note.place == (record, Some(layer)) && !note.doubt.about.as_deref().is_some_and(shown)
        };
        self.0.iter().filter(wanted).collect()
    }
}

/// Returns the letters of several notes, as `ab`, or as `z,aa` if plain letters would be ambiguous.
pub fn marks(notes: &[&Note<'_>]) -> String {
    let marks: Vec<String> = notes.iter().map(|note| note.mark()).collect();
    let separator = if marks.iter().any(|mark| mark.len() > 1) { "," } else { "" };
    marks.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_on_after_z() {
        let doubt = Doubt::new("a", String::new());
        let note = |number| Note { number, doubt: &doubt, place: (0, None) };
        let mark = |number| note(number).mark();
        assert_eq!(
            (mark(0), mark(25), mark(26), mark(27), mark(52)),
            ("a".into(), "z".into(), "aa".into(), "ab".into(), "ba".into())
        );
        assert_eq!(marks(&[&note(0), &note(2)]), "ac");
        assert_eq!(marks(&[&note(25), &note(26)]), "z,aa");
    }
}
