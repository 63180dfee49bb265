//! Tests of tables and pages of records that repeat the experiment of a paper.

use crate::support;
use netdyno_measure::comb::{Named, Stack};
use netdyno_measure::record::{LayerResult, Paper, Record};
use netdyno_measure::speight::{Section5, Variant};
use netdyno_report::{html, table};

/// The stacks, as a simulated interface has them.
const CALLER: &str =
    "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.1ns/B,O_s=0.25ns/B,O_r=0.25ns/B,offload=off,noise=0.02";
const STEALING: &str = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.2ns/B,steal=0.2ns/B,helper=0.2ns/B,noise=0.02";
const UNAIDED: &str = "o_s=100ns,o_r=200ns,g=50ns,L=20us,G=0.5ns/B,helper=0.1ns/B,noise=0.02";

fn labelled(label: &str, truth: &str) -> LayerResult {
    LayerResult { label: Some(label.into()), ..support::overlap_layer("mpi", truth, 9) }
}

fn of_paper(paper: Paper, results: Vec<LayerResult>) -> Record {
    Record { paper: Some(paper), ..support::record(results) }
}

/// Returns the text on one line.
fn in_a_row(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn both_methods_of_comb_name_each_stack() {
    let truth = |stack| match stack {
        Stack::Caller => CALLER,
        Stack::Kernel | Stack::Interrupt => STEALING,
        Stack::Offload => UNAIDED,
    };
    let results = Stack::ALL.map(|stack| labelled(stack.label(), truth(stack)));
    for (stack, result) in Stack::ALL.into_iter().zip(&results) {
        let size = result.found.overlap().unwrap().sizes.last().unwrap();
        let named = [Named::by_polling(size), Named::by_waiting(size)];
        assert_eq!(named, [Named::wanted(stack); 2], "{stack:?}: {}", size.finding.text);
    }
    let record = of_paper(Paper::Comb, results.into());
    let (text, page) = (in_a_row(&table::render(&record, 80)), html::render(&[record]));
    for said in [
        "caller: progress is made inside calls only.",
        "interrupt: progress is made by stealing the caller's processor.",
        "engine: progress is made unaided.",
        "100 kB: both methods say so",
        "in the paper 48 µs and 161 MB/s",
    ] {
        assert!(text.contains(said) && page.replace("&#39;", "'").contains(said), "{said}: {text}");
    }
    assert!(page.contains("<title>The protocol stacks of Brightwell et al. (2003)"));
}

/// A stack that is named wrongly is said to be.
#[test]
fn a_method_that_finds_something_else_says_so() {
    let record = of_paper(Paper::Comb, vec![labelled(Stack::Offload.label(), CALLER)]);
    let text = in_a_row(&table::render(&record, 80));
    assert!(
        text.contains("polling says: inside calls only, post-work-wait says: inside calls only"),
        "{text}"
    );
}

#[test]
fn the_gains_of_section_5_are_those_of_the_model() {
    // Half round trips in µs: 10 without bytes, and bytes at 1 ns. A change takes 2 µs or half of the time of a byte.
    let truth = |fixed: f64, per_byte: f64| format!("o_s=1us,o_r=1us,g=1us,L={fixed}us,G={per_byte}ns/B");
    let of = |variant| match variant {
        Variant::Udp => truth(18.0, 1.0),
        Variant::Vi => truth(2.0, 0.5),
        Variant::MpiOverUdp => truth(38.0, 1.0),
        Variant::Baseline => truth(8.0, 1.0),
        Variant::NoAcks | Variant::Spinning => truth(6.0, 1.0),
        Variant::NoCopies => truth(8.0, 0.5),
        Variant::AllThree => truth(4.0, 0.5),
        Variant::WithoutThread => truth(3.0, 0.5),
    };
    let results: Vec<LayerResult> =
        Variant::ALL.into_iter().map(|variant| labelled(variant.label(), &of(variant))).collect();
    let section = Section5::of(&results, 0.95);
    let gain = |variant, size| section.gain(variant, size..=size).value.unwrap();
    for (variant, size, share) in [
        (Variant::NoAcks, 16, 2.0 / 10.0),
        (Variant::NoAcks, 100_000, 2.0 / 110.0),
        (Variant::NoCopies, 100_000, 50.0 / 110.0),
        (Variant::AllThree, 16, 4.0 / 10.0),
        (Variant::Baseline, 5_000, 0.0),
    ] {
        let found = gain(variant, size);
        assert!((found - share).abs() < 0.01, "{variant:?} at {size}: {found} for {share}");
    }
    let ratio = section.ratio(Variant::MpiOverUdp, Variant::Baseline, 1..=16).value.unwrap();
    assert!((ratio - 4.0).abs() < 0.05, "{ratio}");
    let record = of_paper(Paper::Speight5, results);
    let (text, page) = (in_a_row(&table::render(&record, 80)), html::render(std::slice::from_ref(&record)));
    for said in [
        "in the paper 19.5 % below 1 KiB, and less for longer messages. The shape holds",
        "in the paper 46 % on average, and more for longer messages. The shape holds",
        "in the paper 38 % below 1 KiB. The shape holds",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    for figure in ["Figure 7", "Figure 8", "Figure 9"] {
        assert!(page.contains(figure), "{figure}");
    }
    // A record without some of the variants is drawn as well.
    let some = Record { results: record.results[..2].to_vec(), ..record };
    assert!(
        html::render(std::slice::from_ref(&some)).contains("Figure 9")
            && !table::render(&some, 80).is_empty()
    );
}
