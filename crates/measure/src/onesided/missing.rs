//! The warning about operations that the layer does not have. A result has no row for them.

use super::data::Operation;
use super::record::Onesided;
use crate::record::doubt::Doubt;

/// Warns that the layer does not have all operations. `name` returns the name of an operation in the verb. The warning
/// concerns no figure.
pub(crate) fn missing(found: &Onesided, name: fn(Operation) -> &'static str) -> Option<Doubt> {
    let has = |operation| found.operations.iter().any(|figures| figures.operation == operation);
    let names: Vec<String> =
        Operation::ALL.into_iter().filter(|&one| !has(one)).map(|one| format!("no {}", name(one))).collect();
    let (last, before) = names.split_last()?;
    let text = match before {
        [] => format!("the layer has {last}: it is not measured"),
        _ => format!("the layer has {} and {last}: they are not measured", before.join(", ")),
    };
    Some(Doubt::about("missing_operations", "operations", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onesided::record::OperationFigures;
    use crate::record::parameter::PerByte;

    fn warning(has: &[Operation]) -> Option<String> {
        let of = |&operation: &Operation| OperationFigures {
            operation,
            G: PerByte::unobservable(),
            sizes: vec![],
        };
        let operations = has.iter().map(of).collect();
        let found =
            Onesided { level: None, synchronisation: None, memory: None, operations, launches: vec![] };
        missing(&found, Operation::name).map(|doubt| doubt.text)
    }

    #[test]
    fn the_warning_names_every_operation_that_is_missing() {
        use Operation::{FetchAdd, Get, Put, PutNotify};
        let text = |has: &[Operation]| warning(has).unwrap();
        assert_eq!(warning(&[Put, PutNotify, Get, FetchAdd]), None);
        assert_eq!(text(&[Put, PutNotify, Get]), "the layer has no fetch_add: it is not measured");
        assert_eq!(text(&[Put, Get]), "the layer has no put_notify and no fetch_add: they are not measured");
        assert_eq!(
            text(&[Put]),
            "the layer has no put_notify, no get and no fetch_add: they are not measured"
        );
    }
}
