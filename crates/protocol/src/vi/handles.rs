//! The handle of a VI.

use super::table::handle;

handle! {
    /// A handle for a VI.
    ViHandle
}
