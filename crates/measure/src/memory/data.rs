//! The measurements of one launch.

use crate::onesided::data::OnesidedLaunch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// A launch of one-sided operations at the sizes of the verb.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MemoryLaunch(pub OnesidedLaunch);

impl Deref for MemoryLaunch {
    type Target = OnesidedLaunch;

    fn deref(&self) -> &OnesidedLaunch {
        &self.0
    }
}

impl DerefMut for MemoryLaunch {
    fn deref_mut(&mut self) -> &mut OnesidedLaunch {
        &mut self.0
    }
}
