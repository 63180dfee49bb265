//! Measures blocks with different dial settings in one launch. The requester changes the setting between two
//! blocks, in the control block that both processes map.

use netdyno_apparatus_fi::page::{FOLDER, Page};
use netdyno_measure::layer::LayerError;
use netdyno_measure::task::{Data, Subject, Task};
use netdyno_measure::validation::data::Block;
use netdyno_measure::validation::{Dialled, DialledPlan};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Pause after a change of the setting, so that no message of the previous setting is still in flight.
const PAUSE: Duration = Duration::from_millis(2);

/// Measures all blocks.
pub fn measure(
    subject: &mut dyn Subject,
    planned: &DialledPlan,
    progress: &mut dyn FnMut(f64),
) -> Result<Data, LayerError> {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = folder.ok_or_else(|| {
        LayerError(format!("{FOLDER} is not set: have the launcher pass it on, as in -x {FOLDER}"))
    })?;
    let page = Page::open(&folder)
        .map_err(|error| LayerError(format!("cannot turn the dials in {}: {error}", folder.display())))?;
    let mut data = Dialled { launch: planned.launch, dial: planned.dial, ..Dialled::default() };
    for (nth, &(setting, wanted_ns)) in planned.blocks.iter().enumerate() {
        page.select(setting).map_err(LayerError::new)?;
        thread::sleep(PAUSE);
        let mut within = |share| progress((nth as f64 + share) / planned.blocks.len() as f64);
        match subject.measure(&Task::Logp(planned.of_block(nth)), &mut within)? {
            Data::Logp(launch) => data.blocks.push(Block::of(&launch, wanted_ns)),
            _ => return Err(LayerError("a signature was answered with something else".into())),
        }
    }
    Ok(Data::Validate(data))
}
