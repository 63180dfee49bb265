//! The benches of a campaign: each layer with the way to wait, the processors and the conditions that it is
//! measured with, checked.

use super::Conditions;
use crate::hosts::site::Site;
use crate::launch::bench::Bench;
use crate::launch::origin::Origin;
use crate::launch::trial;
use crate::options::bench::Measuring;
use crate::options::once::each_once;
use crate::terminal::fault::Fault;
use netdyno_host::wait::Wait;
use netdyno_layers::catalogue::Layer;
use netdyno_layers::options::DialOptions;
use netdyno_protocol::faults::Faults;

/// Returns the wait policies that the user named.
pub fn named_waits(measuring: &Measuring) -> Result<Vec<Wait>, Fault> {
    let waits = measuring.waits();
    each_once("--wait", &waits, Wait::to_string)?;
    Ok(waits)
}

/// Returns the wait policies in which a layer is measured. `None` stands for the default, which depends on the
/// number of processors. `also` are the policies besides polling, of which a layer is measured in those that it has.
pub fn waits(layer: Layer, named: &[Wait], also: &[Wait], site: &Site) -> Vec<Option<Wait>> {
    if layer == Layer::Sim {
        return vec![None];
    }
    if !named.is_empty() {
        return named.iter().copied().map(Some).collect();
    }
    let also: Vec<Wait> = also.iter().copied().filter(|&wait| layer.can_wait(wait)).collect();
    if also.is_empty() {
        return vec![None];
    }
    [polling(site)].into_iter().chain(also).map(Some).collect()
}

/// Returns the benches of one layer that can be opened. Only the library behind a layer knows whether it is here and
/// whether it can sleep, so that a process tries. A layer that cannot sleep is only polled, unless the user named the
/// ways to wait.
///
/// # Errors
/// The layer cannot be opened. A launcher may start processes on hosts that have more than this one, so that the launch
/// reports it there.
pub fn openable(mut benches: Vec<Bench>, names_waits: bool) -> Result<Vec<Bench>, Fault> {
    let Some(&Bench { layer, ref origin, .. }) = benches.first() else { return Ok(benches) };
    if !layer.is_of_library() || layer.has_launcher() {
        return Ok(benches);
    }
    let is_launched = matches!(origin, Origin::Launcher(_));
    let sleeps = benches.iter().any(|bench| bench.wait.sleeps());
    let Err(why) = trial::open(layer, if sleeps { Wait::Block } else { Wait::Spin }) else {
        return Ok(benches);
    };
    if sleeps && !names_waits && trial::open(layer, Wait::Spin).is_ok() {
        benches.retain(|bench| !bench.wait.sleeps());
        return Ok(benches);
    }
    if is_launched { Ok(benches) } else { Err(Fault::BadInput(format!("{layer}: {why}"))) }
}

/// Returns the way to poll: processes that share a processor yield it.
fn polling(site: &Site) -> Wait {
    if share_processors(site) { Wait::Yield } else { Wait::Spin }
}

fn share_processors(site: &Site) -> bool {
    site.processors < site.cpus.len()
}

pub fn bench(
    layer: Layer,
    conditions: &Conditions,
    measuring: &Measuring,
    wait: Option<Wait>,
    site: &Site,
) -> Result<Bench, Fault> {
    let size_bytes = measuring.size_bytes();
    if layer == Layer::Sim {
        check_size(layer, size_bytes, layer.max_size())?;
        let truth = conditions.truth.ok_or_else(|| {
            Fault::BadInput("the sim layer needs its parameters: --truth o_s=1us,o_r=2us,g=5us,L=7us".into())
        })?;
        return Ok(Bench {
            layer,
            label: None,
            size_bytes,
            wait: Wait::Spin,
            cpus: Vec::new(),
            truth: Some(truth),
            processors: 0,
            bind: site.bind,
            origin: Origin::Children,
            faults: None,
            dials: DialOptions::default(),
            variables: Vec::new(),
        });
    }
    if layer.has_launcher() && !matches!(site.origin, Origin::Launcher(_) | Origin::Job(_)) {
        return Err(Fault::BadInput(format!(
            "{layer} needs the launcher of its library: --launcher 'mpiexec -n {{n}}', or start netdyno by it"
        )));
    }
    let wait = wait.unwrap_or_else(|| polling(site));
    check(layer, conditions, measuring, Some(wait))?;
    let dials = dials_of(layer, conditions);
    let (cpus, processors) = (site.cpus.clone(), site.processors);
    if share_processors(site) && wait == Wait::Spin {
        return Err(Fault::BadInput(format!(
            "{} processes that spin on {} would wait for each other's time slices: use --wait yield or more processors",
            cpus.len(),
            if processors == 1 {
                format!("processor {}", cpus[0])
            } else {
                format!("{processors} processors")
            }
        )));
    }
    let faults = conditions.faults.filter(|&faults| faults != Faults::NONE && layer.takes_faults());
    let (bind, origin) = (site.bind, site.origin.clone());
    Ok(Bench {
        layer,
        label: None,
        size_bytes,
        wait,
        cpus,
        processors,
        truth: None,
        bind,
        origin,
        faults,
        dials,
        variables: Vec::new(),
    })
}

/// Checks what is known of the layers before their processes are placed. A launcher may take long for that.
pub fn check_all(
    layers: &[Layer],
    conditions: &Conditions,
    measuring: &Measuring,
    named: &[Wait],
) -> Result<(), Fault> {
    for &layer in layers.iter().filter(|layer| **layer != Layer::Sim) {
        for wait in named.iter().copied().map(Some).chain([None]) {
            check(layer, conditions, measuring, wait)?;
        }
    }
    Ok(())
}

/// Checks what is known of a real layer without the places of its processes.
fn check(
    layer: Layer,
    conditions: &Conditions,
    measuring: &Measuring,
    wait: Option<Wait>,
) -> Result<(), Fault> {
    if let Some(why) = layer.unavailable() {
        return Err(Fault::BadInput(format!("the layer {layer} is not available here: {why}")));
    }
    let are_none = dials_of(layer, conditions).are_none();
    let largest = if are_none { layer.max_size() } else { layer.max_dialled_size() };
    check_size(layer, measuring.size_bytes(), largest)?;
    match wait.filter(|&wait| !layer.can_wait(wait)) {
        None => Ok(()),
        Some(wait) => {
            let names: Vec<String> = layer.waits().iter().map(Wait::to_string).collect();
            Err(Fault::BadInput(format!("{layer} cannot {wait}: use --wait {}", names.join(" or "))))
        }
    }
}

/// Returns the dials of a layer, if it takes any.
fn dials_of(layer: Layer, conditions: &Conditions) -> DialOptions {
    if !layer.takes_dials() {
        return DialOptions::default();
    }
    DialOptions {
        settings: vec![conditions.dials.unwrap_or_default()],
        word: None,
        profile: conditions.profile.clone(),
    }
}

fn check_size(layer: Layer, size_bytes: usize, largest: usize) -> Result<(), Fault> {
    if size_bytes <= largest {
        return Ok(());
    }
    Err(Fault::BadInput(format!(
        "--size {size_bytes} is more than the {largest} bytes that {layer} carries in a message"
    )))
}
