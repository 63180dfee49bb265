//! `breakdown` over the layers of this machine.

use crate::common::{alone, beside, stdout_of};
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::record::Record;

const FEW: [&str; 6] = ["--launches", "2", "--max-time", "1s", "--format", "json"];

fn breakdown(args: &[&str]) -> Record {
    Record::from_json(&stdout_of(&[&["breakdown"], args, &FEW[..]].concat())).unwrap()
}

#[test]
fn every_layer_has_its_tables() {
    let _alone = alone();
    let layers = [
        ("am+shm", &[Table::Exchange, Table::Operation][..]),
        ("am+udp", &[Table::Crossing, Table::Exchange, Table::Operation]),
        ("vi+shm", &[Table::Exchange, Table::Operation]),
        ("vi+udp", &[Table::Crossing, Table::Exchange, Table::Operation]),
        ("udp", &[Table::Crossing, Table::Exchange]),
        ("tcp", &[Table::Crossing, Table::Exchange]),
    ];
    let record = breakdown(&["--over", &layers.map(|(layer, _)| layer).join(",")]);
    for (result, (layer, tables)) in record.results.iter().zip(layers) {
        assert_eq!(result.layer, layer);
        let operations = &result.found.breakdown().unwrap().operations;
        for table in [Table::Crossing, Table::Exchange, Table::Operation] {
            assert_eq!(operations.iter().any(|one| one.table == table), tables.contains(&table), "{layer}");
        }
        for operation in operations {
            assert!(operation.whole.value_ns > Some(0.0), "{layer}: {operation:?}");
        }
    }
    // A request takes a send, which takes a system call.
    let operations = &record.results[1].found.breakdown().unwrap().operations;
    let whole = |name: &str| operations.iter().find(|one| one.name == name).unwrap().whole.value_ns.unwrap();
    assert!(whole("send request") > whole("poll in vain"), "{operations:?}");
    assert!(whole("round trip") > whole("send request"), "{operations:?}");
}

/// With one processor the thread that answers shares it.
#[test]
fn one_processor_is_enough() {
    let _beside = beside();
    let record = breakdown(&["--over", "am+shm,tcp", "--cpus", "0,0", "--size", "100"]);
    for result in &record.results {
        let operations = &result.found.breakdown().unwrap().operations;
        assert!(operations.iter().all(|one| one.whole.value_ns > Some(0.0)), "{operations:?}");
    }
}
