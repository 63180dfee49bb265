//! Saved records, named on the command line as a file, or as FILE:LAYER.

use crate::terminal::fault::Fault;
use netdyno_measure::record::{LayerResult, Ratio, Record};
use netdyno_measure::sweep::Sweep;
use std::fmt::Display;
use std::fs;
use std::path::Path;

/// A record from a file.
pub struct Saved {
    /// The file, as the user named it.
    pub name: String,
    /// The single layer that the user named, if any.
    pub layer: Option<String>,
    /// The record.
    pub record: Record,
}

impl Saved {
    /// Reads a record. `named` is a file, or FILE:LAYER if no such file exists.
    pub fn read(named: &str) -> Result<Self, Fault> {
        let (name, layer) = parted(named, |name| Path::new(name).exists());
        Ok(Self { name: name.into(), layer: layer.map(str::to_owned), record: read(Path::new(name))? })
    }

    /// Returns the results that the user named.
    pub fn results(&self) -> Result<Vec<&LayerResult>, Fault> {
        let is_meant = |result: &&LayerResult| self.layer.as_ref().is_none_or(|layer| *layer == result.layer);
        let results: Vec<&LayerResult> = self.record.results.iter().filter(is_meant).collect();
        match &self.layer {
            Some(layer) if results.is_empty() => {
                Err(Fault::BadInput(format!("{} has no layer '{layer}'", self.name)))
            }
            _ => Ok(results),
        }
    }

    /// Reports whether a result is only the reference for a library's result, and was not named itself.
    pub fn is_reference(&self, result: &LayerResult) -> bool {
        let is_of = |ratio: &Ratio| ratio.to_reference && ratio.denominator == result.name();
        self.layer.is_none() && self.record.ratios.iter().any(is_of)
    }
}

/// Returns the file and the layer that the user named. Names of files and of layers may both have colons: the file is the
/// shortest that `exists`.
fn parted(named: &str, exists: impl Fn(&str) -> bool) -> (&str, Option<&str>) {
    if exists(named) {
        return (named, None);
    }
    let mut parts = named.match_indices(':').map(|(at, _)| (&named[..at], &named[at + 1..]));
    let found = parts.find(|(file, _)| exists(file)).or_else(|| named.split_once(':'));
    found.map_or((named, None), |(file, layer)| (file, Some(layer)))
}

/// Reads the record in a file.
pub fn read(file: &Path) -> Result<Record, Fault> {
    Record::from_json(&text(file)?).map_err(|error| bad(file, &error))
}

/// Reads the sweep in a file. Returns `None` if the file has something else.
pub fn read_sweep(file: &Path) -> Result<Option<Sweep>, Fault> {
    Sweep::from_json(&text(file)?).transpose().map_err(|error| bad(file, &error))
}

fn text(file: &Path) -> Result<String, Fault> {
    fs::read_to_string(file).map_err(|error| bad(file, &error))
}

fn bad(file: &Path, error: &dyn Display) -> Fault {
    Fault::BadInput(format!("cannot read {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_layers_may_have_colons() {
        let exists = |name: &str| ["a.json", "12:30.json", "b:tcp"].contains(&name);
        for (named, file, layer) in [
            ("a.json", "a.json", None),
            ("a.json:tcp", "a.json", Some("tcp")),
            ("a.json:ofi:tcp;ofi_rxm", "a.json", Some("ofi:tcp;ofi_rxm")),
            ("12:30.json:ucx:posix", "12:30.json", Some("ucx:posix")),
            ("b:tcp", "b:tcp", None),
            ("none.json:ucx:posix", "none.json", Some("ucx:posix")),
            ("none.json", "none.json", None),
        ] {
            assert_eq!(parted(named, exists), (file, layer), "{named}");
        }
    }
}
