//! The identifier of an open NIC.

/// A NIC: a slot, and how often the slot was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicId {
    pub slot: u8,
    pub generation: u16,
}
