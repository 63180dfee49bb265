//! Virtual Interfaces in software (VIA 1.0; Speight, Abdel-Shafi and Bennett 1999, section 2): the
//! rules, apart from any wire and any memory.

pub mod attributes;
pub mod codes;
pub mod descriptor;
pub mod memory;
pub mod table;

pub use attributes::{Conflict, Offer};
pub use codes::{Level, Status};
pub use descriptor::{Remote, View};
