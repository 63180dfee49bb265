//! The instrument's own test of `registration`: it recovers known costs of memory within 1 %.
//!
//! For a region of p pages:
//! * To register it costs a call and p pages, and p page faults if the region is untouched.
//! * To register it again costs the same without the faults, or a cache hit if a cache knows the region.
//! * To lock it costs likewise, as long as the system allows it.

use netdyno_layers::sim::SimRegistrar;
use netdyno_measure::reading::Reading;
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::registration::data::RegistrationLaunch;
use netdyno_measure::registration::extract::extract;
use netdyno_measure::registration::pattern::{self, RegistrationPlan};
use netdyno_measure::registration::record::Registration;
use netdyno_protocol::sim::Truth;
use netdyno_protocol::sim::memory::{Cost, PAGE};

const LINK: &str = "o_s=1us,o_r=1us,g=1us,L=1us";
const LARGEST: usize = 16 << 20;
const NEAR: f64 = 0.01;

fn launches(truth: Truth, count: usize) -> Vec<RegistrationLaunch> {
    let mut shape = None;
    (0..count)
        .map(|launch| {
            let plan = RegistrationPlan {
                launch,
                shape: shape.clone(),
                largest_bytes: LARGEST,
                budget_ns: 1e8,
                seed: launch as u64,
            };
            let mut registrar = SimRegistrar::new(truth, launch as u64);
            let data = pattern::run(&mut registrar, &plan, &mut |_| {}).unwrap();
            shape = Some(data.shape.clone());
            data
        })
        .collect()
}

fn measured(rest: &str, count: usize) -> (Truth, Reading<Registration>) {
    let truth: Truth = format!("{LINK},{rest}").parse().unwrap();
    (truth, extract(&launches(truth, count), 0.95, 0.02).unwrap())
}

fn doubted(found: &Reading<Registration>) -> Vec<&str> {
    found.doubts.iter().map(|doubt| doubt.name.as_str()).collect()
}

fn assert_is(cost: &Parameter, truth_ps: u64, near: f64, what: &str) {
    assert_eq!(cost.status, Status::Measured, "{what}");
    let (value, truth) = (cost.value_ns.unwrap(), truth_ps as f64 / 1e3);
    assert!((value - truth).abs() <= near * truth + 0.002, "{what}: {value} for {truth}");
}

/// Compares all figures with the known values.
fn assert_known(truth: &Truth, found: &Reading<Registration>, near: f64) {
    let memory = truth.memory;
    let of = |cost: Option<Cost>, bytes| cost.unwrap_or_default().of(bytes);
    for size in &found.found.sizes {
        let bytes = size.size_bytes;
        let faults = bytes.div_ceil(PAGE) as u64 * memory.fault_ps.unwrap_or_default();
        let register = of(memory.register, bytes);
        let cached = memory.cached_ps.unwrap_or(register);
        let (again, deregister) = match memory.kept {
            Some(true) => (cached, cached),
            _ => (register, of(memory.deregister, bytes)),
        };
        let what = |name: &str| format!("{name} of {bytes} bytes with {memory:?}");
        assert_is(&size.first_touch, register + faults, near, &what("first touch"));
        assert_is(&size.touched, register, near, &what("touched"));
        assert_is(&size.cached, cached, near, &what("cached"));
        assert_is(&size.again, again, near, &what("again"));
        assert_is(&size.deregister, deregister, near, &what("deregister"));
        if memory.lock_limit_bytes.is_some_and(|limit| bytes > limit) {
            let refused = [&size.lock_first_touch, &size.lock, &size.unlock];
            assert!(refused.iter().all(|cost| cost.status == Status::Unobservable), "{}", what("lock"));
            continue;
        }
        assert_is(&size.lock_first_touch, of(memory.lock, bytes) + faults, near, &what("lock, first touch"));
        assert_is(&size.lock, of(memory.lock, bytes), near, &what("lock"));
        assert_is(&size.unlock, of(memory.unlock, bytes), near, &what("unlock"));
    }
}

#[test]
fn what_memory_costs_comes_back() {
    for (rest, doubts) in [
        (
            "register=1us+50ns/page,fault=250ns,deregister=500ns+10ns/page,lock=2us+80ns/page,unlock=1us+5ns/page",
            vec![],
        ),
        (
            "register=15us+2us/page,fault=900ns,cached=100ns,deregister=9us+1us/page,lock=1us+1us/page,unlock=1us",
            vec![],
        ),
        (
            "register=1us+50ns/page,cached=90ns,kept=on,deregister=1us,lock=2us+1ns/page,unlock=1us",
            vec!["kept_after_deregistering"],
        ),
        ("register=80ns,deregister=60ns,fault=100ns,lock=1us+1ns/page,unlock=1us", vec!["not_pinned"]),
        (
            "register=1us+9ns/page,deregister=1us,lock=1us+1ns/page,unlock=1us,lock_limit=64KiB",
            vec!["lock_refused"],
        ),
    ] {
        let truth: Truth = format!("{LINK},{rest}").parse().unwrap();
        let data = launches(truth, 6);
        let found = extract(&data, 0.95, 0.02).unwrap();
        assert_known(&truth, &found, NEAR);
        assert_eq!(doubted(&found), doubts, "{rest}: {:?}", found.doubts);
        assert!(found.is_precise(0.001), "{rest}");
    }
}

#[test]
fn sizes_are_powers_of_four_up_to_the_largest() {
    let (_, found) = measured("register=1us", 1);
    let sizes: Vec<usize> = found.found.sizes.iter().map(|size| size.size_bytes).collect();
    assert_eq!(sizes, (0..13).map(|power| 4usize.pow(power)).collect::<Vec<_>>());
    assert_eq!(doubted(&found).last(), Some(&"too_few_launches"));
}

#[test]
fn what_does_not_depend_on_the_size_has_its_own_place() {
    let (_, found) = measured("register=1us,create=5us", 6);
    let [create] = &found.found.fixed[..] else { panic!("{:?}", found.found.fixed) };
    assert_eq!(create.name, "create");
    assert_is(&create.cost, 5_000_000, NEAR, "create");
    assert!(measured("register=1us", 1).1.found.fixed.is_empty());
}

#[test]
fn intervals_hold_the_truth_in_noise() {
    let rest = "register=1us+50ns/page,fault=250ns,cached=100ns,deregister=500ns+10ns/page,lock=1us+9ns/page,\
                unlock=1us+1ns/page,noise=0.1";
    let (truth, found) = measured(rest, 20);
    assert_known(&truth, &found, 0.03);
    let held = found.found.sizes.iter().filter(|size| {
        let truth = truth.memory.register.unwrap().of(size.size_bytes) as f64 / 1e3;
        size.touched.ci_ns.unwrap().contains(truth)
    });
    assert!(held.count() >= found.found.sizes.len() - 2);
}

#[test]
fn launches_that_do_not_belong_together_say_nothing() {
    let truth: Truth = format!("{LINK},register=1us").parse().unwrap();
    let whole = launches(truth, 2);
    let spoilt = |change: fn(&mut RegistrationLaunch)| {
        let mut launches = whole.clone();
        change(&mut launches[1]);
        extract(&launches, 0.95, 0.02)
    };
    assert!(extract(&[], 0.95, 0.02).is_none());
    assert!(spoilt(|launch| launch.sizes.truncate(3)).is_none());
    assert!(spoilt(|launch| launch.shape.sizes[2].size_bytes += 1).is_none());
    assert!(spoilt(|launch| launch.fixed.push(Default::default())).is_none());
    assert!(spoilt(|launch| launch.sizes[3].touched_ns.clear()).is_some());
}
