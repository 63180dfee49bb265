//! Lists on the command line, whose values are each given once.

use crate::terminal::fault::Fault;

/// Checks that a list has no value twice. `name` spells a value.
///
/// # Errors
/// A value stands twice in the list of the option.
pub fn each_once<T: PartialEq>(option: &str, values: &[T], name: impl Fn(&T) -> String) -> Result<(), Fault> {
    match values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
        None => Ok(()),
        Some((_, twice)) => {
            Err(Fault::BadInput(format!("{option} names {} twice: name it once", name(twice))))
        }
    }
}
