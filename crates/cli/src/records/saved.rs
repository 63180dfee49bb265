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
        let (name, layer) = match named.rsplit_once(':') {
            Some((file, layer)) if !Path::new(named).exists() => (file, Some(layer.to_owned())),
            _ => (named, None),
        };
        Ok(Self { name: name.into(), layer, record: read(Path::new(name))? })
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
