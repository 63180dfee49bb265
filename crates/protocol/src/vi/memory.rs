//! Registered memory and its access rights (VIA 1.0, "memory protection"; Speight et al. 1999, section
//! 2.2).
//!
//! Only registered memory is usable. A region has a protection tag, and so has a VI; both must be the
//! same. A peer's RDMA needs the permission of the region as well, one for reads and one for writes. A
//! handle names a region until the region is deregistered. After that it is refused, even if other
//! memory is registered in its place.

use super::descriptor::DescriptorAt;
use super::table::{Table, handle};
use super::work::{Remote, Segment};

handle! {
    /// A protection tag. A VI may only use memory with its own tag.
    Ptag
}

handle! {
    /// A handle for a region of registered memory.
    MemHandle
}

/// The limits of protection tags and registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most protection tags.
    pub tags: u32,
    /// Most regions.
    pub regions: u32,
    /// Longest region, bytes.
    pub region_bytes: u64,
    /// Most bytes of all regions together.
    pub bytes: u64,
}

/// The attributes of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemAttributes {
    /// Its protection tag.
    pub tag: Ptag,
    /// Whether peers may write into it.
    pub can_be_written: bool,
    /// Whether peers may read from it.
    pub can_be_read: bool,
}

/// The kinds of access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By a descriptor of this side.
    Local,
    /// By an RDMA write of the peer.
    PeerWrites,
    /// By an RDMA read of the peer.
    PeerReads,
}

/// The reasons why an access is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The handle has no region, or no longer.
    Handle,
    /// Some of the bytes are outside of the region.
    Range,
    /// The protection tags of the region and of the VI differ.
    Tag,
    /// The region does not permit this access by peers.
    Access,
}

/// The reasons why a call about memory or tags is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryError {
    /// The protection tag does not exist.
    NoSuchTag,
    /// The region does not exist, or begins at another address.
    NoSuchRegion,
    /// The range has no bytes, or its addresses overflow.
    NoRange,
    /// There are too many tags, regions or bytes.
    TooMuch,
    /// A region or a VI has the tag.
    TagInUse,
    /// Peers can not read on this provider.
    ReadNotSupported,
}

/// A region of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first address.
    pub address: u64,
    /// Its length, bytes.
    pub len: u64,
    /// Its attributes.
    pub attributes: MemAttributes,
}

impl Region {
    /// Checks whether a VI with the tag `tag` may access `len` bytes from `address` on. A copy of the
    /// region gives the same answer as the original, so a peer that copies bytes by itself may use one.
    ///
    /// # Errors
    /// Returns the reason if the access is denied.
    #[inline]
    pub fn check(&self, tag: Ptag, address: u64, len: u64, access: Access) -> Result<(), Denied> {
        let is_within = address
            .checked_sub(self.address)
            .and_then(|offset| offset.checked_add(len))
            .is_some_and(|end| end <= self.len);
        if !is_within {
            return Err(Denied::Range);
        }
        if self.attributes.tag != tag {
            return Err(Denied::Tag);
        }
        let is_allowed = match access {
            Access::Local => true,
            Access::PeerWrites => self.attributes.can_be_written,
            Access::PeerReads => self.attributes.can_be_read,
        };
        if is_allowed { Ok(()) } else { Err(Denied::Access) }
    }
}

/// The tags and regions of a provider.
#[derive(Clone, Debug)]
pub struct Memory {
    limits: Limits,
    can_read: bool,
    /// The tags, each with the number of regions and VIs that have it.
    tags: Table<Ptag, u32>,
    regions: Table<MemHandle, Region>,
    bytes: u64,
    /// Counts the changes that may revoke an access that was allowed before.
    changes: u64,
}

impl Memory {
    /// Creates a memory without tags and regions. `can_read` says whether regions may permit reads by
    /// peers.
    pub fn new(limits: Limits, can_read: bool) -> Self {
        let (tags, regions) = (Table::new(limits.tags), Table::new(limits.regions));
        Self { limits, can_read, tags, regions, bytes: 0, changes: 0 }
    }

    /// Creates a protection tag.
    ///
    /// # Errors
    /// Returns `TooMuch` if there are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, MemoryError> {
        self.tags.insert(0).map_err(|_| MemoryError::TooMuch)
    }

    /// Destroys a protection tag.
    ///
    /// # Errors
    /// Returns `NoSuchTag` if it does not exist, `TagInUse` if a region or a VI has it.
    pub fn destroy_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        match self.tags.get(tag) {
            None => Err(MemoryError::NoSuchTag),
            Some(0) => {
                self.tags.remove(tag);
                Ok(())
            }
            Some(_) => Err(MemoryError::TagInUse),
        }
    }

    /// Adds one to the users of a tag.
    ///
    /// # Errors
    /// Returns `NoSuchTag` if the tag does not exist.
    pub fn take_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        *self.tags.get_mut(tag).ok_or(MemoryError::NoSuchTag)? += 1;
        Ok(())
    }

    /// Takes one from the users of a tag.
    pub fn leave_tag(&mut self, tag: Ptag) {
        if let Some(count) = self.tags.get_mut(tag) {
            *count = count.saturating_sub(1);
        }
    }

    /// Registers `len` bytes of memory at `address`.
    ///
    /// # Errors
    /// Returns `NoRange` if there are no bytes or the addresses overflow, `NoSuchTag` if the tag does
    /// not exist. Returns `ReadNotSupported` if peers may not read here, `TooMuch` if a limit is
    /// exceeded.
    pub fn register(
        &mut self,
        address: u64,
        len: u64,
        attributes: MemAttributes,
    ) -> Result<MemHandle, MemoryError> {
        if len == 0 || address.checked_add(len).is_none() {
            return Err(MemoryError::NoRange);
        }
        self.check_attributes(&attributes)?;
        if len > self.limits.region_bytes || len > self.limits.bytes - self.bytes || self.regions.is_full() {
            return Err(MemoryError::TooMuch);
        }
        self.take_tag(attributes.tag)?;
        self.bytes += len;
        self.regions.insert(Region { address, len, attributes }).map_err(|_| MemoryError::TooMuch)
    }

    /// Deregisters a region at once.
    ///
    /// # Errors
    /// Returns `NoSuchRegion` if the handle has no region that begins at `address`.
    pub fn deregister(&mut self, address: u64, handle: MemHandle) -> Result<(), MemoryError> {
        let region = *self.query(address, handle)?;
        self.regions.remove(handle);
        self.changes += 1;
        self.bytes -= region.len;
        self.leave_tag(region.attributes.tag);
        Ok(())
    }

    /// Returns the region of a handle, which begins at `address`.
    ///
    /// # Errors
    /// Returns `NoSuchRegion` if the handle has no region that begins there.
    pub fn query(&self, address: u64, handle: MemHandle) -> Result<&Region, MemoryError> {
        let region = self.regions.get(handle).filter(|region| region.address == address);
        region.ok_or(MemoryError::NoSuchRegion)
    }

    /// Changes the attributes of a region.
    ///
    /// # Errors
    /// Returns `NoSuchRegion` if the handle has no region that begins at `address`. Returns `NoSuchTag`
    /// if the tag does not exist, `ReadNotSupported` if peers may not read here.
    pub fn set_attributes(
        &mut self,
        address: u64,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), MemoryError> {
        let old = self.query(address, handle)?.attributes;
        self.check_attributes(&attributes)?;
        self.take_tag(attributes.tag)?;
        self.leave_tag(old.tag);
        if let Some(region) = self.regions.get_mut(handle) {
            region.attributes = attributes;
        }
        self.changes += 1;
        Ok(())
    }

    fn check_attributes(&self, attributes: &MemAttributes) -> Result<(), MemoryError> {
        if self.tags.get(attributes.tag).is_none() {
            return Err(MemoryError::NoSuchTag);
        }
        if attributes.can_be_read && !self.can_read {
            return Err(MemoryError::ReadNotSupported);
        }
        Ok(())
    }

    /// Counts the change of a VI's tag, which may revoke an access.
    pub fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Returns the number of changes that may have revoked an access. An earlier check still holds if
    /// the number is the same.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the region of a handle.
    #[inline]
    pub fn region(&self, handle: u32) -> Option<&Region> {
        self.regions.get(MemHandle(handle))
    }

    /// Checks whether a VI with the tag `tag` may use a segment of this side's memory. A segment
    /// without bytes passes.
    ///
    /// # Errors
    /// Returns the reason if the access is denied.
    #[inline]
    pub fn check(&self, tag: Ptag, segment: &Segment) -> Result<(), Denied> {
        let Segment { address, handle, len } = *segment;
        if len == 0 {
            return Ok(());
        }
        self.region(handle).ok_or(Denied::Handle)?.check(tag, address, len.into(), Access::Local)
    }

    /// Checks whether the peer of a VI with the tag `tag` may access `len` bytes of this side's memory.
    ///
    /// # Errors
    /// Returns the reason if the access is denied.
    #[inline]
    pub fn check_remote(&self, tag: Ptag, remote: Remote, len: u32, access: Access) -> Result<(), Denied> {
        let region = self.region(remote.handle).ok_or(Denied::Handle)?;
        region.check(tag, remote.address, len.into(), access)
    }

    /// Checks whether a VI with the tag `tag` may use the memory of a descriptor's control segment.
    /// Returns the bytes from there to the end of the region.
    ///
    /// # Errors
    /// Returns the reason if the access is denied.
    #[inline]
    pub fn check_descriptor(&self, tag: Ptag, at: DescriptorAt) -> Result<u64, Denied> {
        let region = self.region(at.handle).ok_or(Denied::Handle)?;
        region.check(tag, at.address, super::descriptor::CONTROL_LEN as u64, Access::Local)?;
        Ok(region.len - (at.address - region.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { tags: 4, regions: 4, region_bytes: 1000, bytes: 2500 };

    fn attributes(tag: Ptag) -> MemAttributes {
        MemAttributes { tag, can_be_written: false, can_be_read: false }
    }

    #[test]
    fn memory_is_usable_under_the_tag_of_the_vi_alone() {
        let mut memory = Memory::new(LIMITS, true);
        let [ours, theirs] = [(); 2].map(|()| memory.create_tag().unwrap());
        let handle = memory.register(100, 50, attributes(ours)).unwrap();
        let segment = Segment { address: 100, handle: handle.0, len: 50 };
        assert_eq!(memory.check(ours, &segment), Ok(()));
        assert_eq!(memory.check(theirs, &segment), Err(Denied::Tag));
        assert_eq!(memory.check(ours, &Segment { address: 101, ..segment }), Err(Denied::Range));
        assert_eq!(memory.check(ours, &Segment { address: 99, ..segment }), Err(Denied::Range));
        assert_eq!(memory.check(ours, &Segment { handle: handle.0 + 1, ..segment }), Err(Denied::Handle));
        memory.set_attributes(100, handle, attributes(theirs)).unwrap();
        assert_eq!(memory.check(ours, &segment), Err(Denied::Tag));
    }

    #[test]
    fn peers_need_the_leave_of_the_region() {
        let mut memory = Memory::new(LIMITS, true);
        let tag = memory.create_tag().unwrap();
        let handle = memory.register(0, 10, attributes(tag)).unwrap();
        let remote = Remote { address: 0, handle: handle.0 };
        for (can_be_written, can_be_read) in [(false, false), (true, false), (false, true), (true, true)] {
            memory.set_attributes(0, handle, MemAttributes { tag, can_be_written, can_be_read }).unwrap();
            let writes = memory.check_remote(tag, remote, 10, Access::PeerWrites);
            let reads = memory.check_remote(tag, remote, 10, Access::PeerReads);
            assert_eq!((writes.is_ok(), reads.is_ok()), (can_be_written, can_be_read));
        }
    }

    #[test]
    fn a_handle_is_refused_once_its_memory_is_deregistered() {
        let mut memory = Memory::new(LIMITS, true);
        let tag = memory.create_tag().unwrap();
        let stale = memory.register(0, 10, attributes(tag)).unwrap();
        assert_eq!(memory.deregister(1, stale), Err(MemoryError::NoSuchRegion));
        memory.deregister(0, stale).unwrap();
        let segment = Segment { address: 0, handle: stale.0, len: 10 };
        for _ in 0..LIMITS.regions {
            memory.register(0, 10, attributes(tag)).unwrap();
            assert_eq!(memory.check(tag, &segment), Err(Denied::Handle));
        }
        assert_eq!(memory.deregister(0, stale), Err(MemoryError::NoSuchRegion));
    }

    #[test]
    fn limits_and_tags_in_use_are_heeded() {
        let mut memory = Memory::new(LIMITS, false);
        let tag = memory.create_tag().unwrap();
        assert_eq!(memory.register(0, 0, attributes(tag)), Err(MemoryError::NoRange));
        assert_eq!(memory.register(u64::MAX, 2, attributes(tag)), Err(MemoryError::NoRange));
        assert_eq!(memory.register(0, 1001, attributes(tag)), Err(MemoryError::TooMuch));
        assert_eq!(memory.register(0, 1, attributes(Ptag(7))), Err(MemoryError::NoSuchTag));
        let readable = MemAttributes { can_be_read: true, ..attributes(tag) };
        assert_eq!(memory.register(0, 1, readable), Err(MemoryError::ReadNotSupported));
        let regions = [0, 1000].map(|address| memory.register(address, 1000, attributes(tag)).unwrap());
        assert_eq!(memory.register(2000, 501, attributes(tag)), Err(MemoryError::TooMuch));
        assert_eq!(memory.destroy_tag(tag), Err(MemoryError::TagInUse));
        memory.deregister(0, regions[0]).unwrap();
        memory.deregister(1000, regions[1]).unwrap();
        assert_eq!(memory.destroy_tag(tag), Ok(()));
        assert_eq!(memory.destroy_tag(tag), Err(MemoryError::NoSuchTag));
        assert_eq!(memory.bytes, 0);
    }

    proptest! {
        /// Compares the check of a range with a check of each byte.
        #[test]
        fn a_range_is_within_a_region_if_each_of_its_bytes_is(
            at in 0..20_u64, len in 1..20_u64, address in 0..50_u64, count in 0..20_u64,
        ) {
            let attributes = MemAttributes { tag: Ptag(1), can_be_written: false, can_be_read: false };
            let region = Region { address: at, len, attributes };
            let is_within = (address..address + count).all(|byte| (at..at + len).contains(&byte));
            let is_checked = region.check(Ptag(1), address, count, Access::Local).is_ok();
            // An empty range may also lie at the end of the region.
            let is_right = if count == 0 { is_checked == (at..=at + len).contains(&address) } else { is_checked == is_within };
            prop_assert!(is_right);
        }

        #[test]
        fn no_range_overflows(at: u64, len in 1_u64.., address: u64, count: u64) {
            prop_assume!(at.checked_add(len).is_some());
            let attributes = MemAttributes { tag: Ptag(1), can_be_written: false, can_be_read: false };
            let region = Region { address: at, len, attributes };
            let end = u128::from(address) + u128::from(count);
            let is_within = address >= at && end <= u128::from(at) + u128::from(len);
            prop_assert_eq!(region.check(Ptag(1), address, count, Access::Local).is_ok(), is_within);
        }
    }
}
