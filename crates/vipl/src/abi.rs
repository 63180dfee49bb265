//! The structures of `vipl.h` and their conversion to the provider's types. The test below compares them
//! with the header.

use crate::handle::{Handled, Opaque};
use crate::nic::Nic;
use crate::nic::id::NicId;
use crate::settings;
use netdyno_stack::vi::{Address, Level, MemAttributes, Offer, ReturnCode, ViAttributes};
use std::ffi::{c_char, c_int, c_ulong};
use std::ptr;

/// `VIP_ERROR_HANDLER`.
pub type ErrorHandler = unsafe extern "C" fn(Opaque, *mut ErrorDescriptor);
/// `VIP_VI_CALLBACK`.
pub type ViCallback = unsafe extern "C" fn(Opaque, Opaque, Opaque, *mut Descriptor);
/// `VIP_CQ_CALLBACK`.
pub type CqCallback = unsafe extern "C" fn(Opaque, Opaque, Opaque, c_int);

/// `VIP_DESCRIPTOR`. The provider reads and writes its bytes.
#[repr(C)]
pub struct Descriptor {
    bytes: [u64; 8],
}

/// The beginning of `VIP_NET_ADDRESS`; the host's bytes follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NetAddress {
    host_len: u16,
    discriminator_len: u16,
}

/// `VIP_NIC_ATTRIBUTES`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CNicAttributes {
    name: [c_char; 64],
    hardware_version: c_ulong,
    provider_version: c_ulong,
    address_len: u16,
    address: *const u8,
    is_thread_safe: c_int,
    discriminator_len: u16,
    register_bytes: c_ulong,
    register_regions: c_ulong,
    register_block_bytes: c_ulong,
    vis: c_ulong,
    descriptors: c_ulong,
    segments: c_ulong,
    cqs: c_ulong,
    cq_entries: c_ulong,
    transfer_bytes: c_ulong,
    mtu_bytes: c_ulong,
    ptags: c_ulong,
    levels: u16,
    read_levels: u16,
}

/// `VIP_VI_ATTRIBUTES`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CViAttributes {
    level: u16,
    transfer_bytes: c_ulong,
    qos: Opaque,
    ptag: Opaque,
    can_be_written: c_int,
    can_be_read: c_int,
}

/// `VIP_MEM_ATTRIBUTES`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CMemAttributes {
    ptag: Opaque,
    can_be_written: c_int,
    can_be_read: c_int,
}

/// `VIP_ERROR_DESCRIPTOR`.
#[repr(C)]
pub struct ErrorDescriptor {
    pub nic: Opaque,
    pub vi: Opaque,
    pub cq: Opaque,
    pub descriptor: *mut Descriptor,
    pub op_code: c_ulong,
    pub resource: u32,
    pub error: u32,
}

/// A pointer from the program that is not NULL.
pub struct Given<T>(*mut T);

impl<T> Given<T> {
    /// Takes a pointer; returns `InvalidParameter` if it is NULL.
    pub fn new(pointer: *mut T) -> Result<Self, ReturnCode> {
        if pointer.is_null() { Err(ReturnCode::InvalidParameter) } else { Ok(Self(pointer)) }
    }

    /// Returns the pointer.
    pub fn pointer(&self) -> *mut T {
        self.0
    }

    /// Writes a value to the pointer.
    ///
    /// # Safety
    /// A `T` can be written there.
    pub unsafe fn put(&self, value: T) {
        // SAFETY: the caller says that a `T` can be written there; it need not be aligned.
        unsafe { self.0.write_unaligned(value) };
    }
}

impl<T: Copy> Given<T> {
    /// Reads the value at the pointer.
    ///
    /// # Safety
    /// A `T` can be read there.
    pub unsafe fn get(&self) -> T {
        // SAFETY: the caller says that a `T` can be read there; it need not be aligned.
        unsafe { self.0.read_unaligned() }
    }
}

/// Bytes of the two length members of an address.
const LENGTHS: usize = size_of::<NetAddress>();

impl Given<NetAddress> {
    /// Copies an address.
    ///
    /// # Errors
    /// Returns `InvalidParameter` if host or discriminator are longer than the NIC allows.
    ///
    /// # Safety
    /// An address can be read there.
    pub unsafe fn address(&self, nic: &Nic) -> Result<Address, ReturnCode> {
        // SAFETY: the caller says that an address can be read there. The address begins with its lengths.
        let NetAddress { host_len, discriminator_len } = unsafe { self.get() };
        let most = nic.provider.attributes();
        if host_len > most.host_bytes.into() || discriminator_len > most.discriminator_bytes.into() {
            return Err(ReturnCode::InvalidParameter);
        }
        let bytes = |at: usize, len: u16| {
            let mut bytes = vec![0; len.into()];
            // SAFETY: the caller says that an address can be read there. The address has as many bytes as
            // its lengths say.
            unsafe { self.0.cast::<u8>().add(LENGTHS + at).copy_to(bytes.as_mut_ptr(), len.into()) };
            bytes
        };
        Ok(Address { host: bytes(0, host_len), discriminator: bytes(host_len.into(), discriminator_len) })
    }

    /// Copies the address of a peer.
    ///
    /// # Errors
    /// Returns `InvalidParameter` if the address is too long, or if the host's length is not that of the
    /// wire.
    ///
    /// # Safety
    /// An address can be read there.
    pub unsafe fn remote_address(&self, nic: &Nic) -> Result<Address, ReturnCode> {
        // SAFETY: the caller says that an address can be read there.
        let address = unsafe { self.address(nic) }?;
        let is_whole = address.host.len() == usize::from(nic.provider.attributes().host_bytes);
        if is_whole { Ok(address) } else { Err(ReturnCode::InvalidParameter) }
    }

    /// Copies the host of a peer's address. The discriminator and its length may be anything.
    ///
    /// # Errors
    /// Returns `InvalidParameter` if the host's length is not that of the wire.
    ///
    /// # Safety
    /// The length and the host can be read there.
    pub unsafe fn remote_host(&self, nic: &Nic) -> Result<Vec<u8>, ReturnCode> {
        // SAFETY: the caller says that the length can be read there, with which an address begins.
        let len = unsafe { self.0.cast::<u16>().read_unaligned() };
        if len != nic.provider.attributes().host_bytes.into() {
            return Err(ReturnCode::InvalidParameter);
        }
        let mut host = vec![0; len.into()];
        // SAFETY: the caller says that the host can be read there.
        unsafe { self.0.cast::<u8>().add(LENGTHS).copy_to(host.as_mut_ptr(), len.into()) };
        Ok(host)
    }

    /// Writes a host, and leaves the discriminator and its length unchanged.
    ///
    /// # Safety
    /// There is room for the host and its length.
    pub unsafe fn put_host(&self, host: &[u8]) {
        // SAFETY: the caller says that there is room for the host's bytes behind their length.
        unsafe {
            self.0.cast::<u16>().write_unaligned(host.len() as u16);
            self.put_bytes(0, host);
        }
    }

    /// Writes an address.
    ///
    /// # Safety
    /// There is room for the address.
    pub unsafe fn put_address(&self, Address { host, discriminator }: &Address) {
        let lengths =
            NetAddress { host_len: host.len() as u16, discriminator_len: discriminator.len() as u16 };
        // SAFETY: the caller says that there is room for the lengths, the host and the discriminator.
        unsafe {
            self.put(lengths);
            self.put_bytes(0, host);
            self.put_bytes(host.len(), discriminator);
        }
    }

    unsafe fn put_bytes(&self, at: usize, bytes: &[u8]) {
        // SAFETY: the caller says that there is room for so many bytes at that offset.
        unsafe { self.0.cast::<u8>().add(LENGTHS + at).copy_from(bytes.as_ptr(), bytes.len()) };
    }
}

/// Returns the version of the provider: one byte each for major, minor and patch.
fn version() -> c_ulong {
    let parts =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    parts.iter().fold(0, |version, part| version << 8 | part.parse::<c_ulong>().unwrap_or(0))
}

impl CNicAttributes {
    /// Returns the attributes of a NIC.
    pub fn of(nic: &Nic) -> Self {
        let own = nic.provider.attributes();
        let mut name = [0; 64];
        // The last byte stays 0 and ends the string.
        for (to, from) in name[..63].iter_mut().zip(settings::name(nic.way).bytes()) {
            *to = from as c_char;
        }
        Self {
            name,
            hardware_version: 0,
            provider_version: version(),
            address_len: nic.address.len() as u16,
            address: nic.address.as_ptr(),
            is_thread_safe: 1,
            discriminator_len: own.discriminator_bytes.into(),
            register_bytes: own.memory.bytes,
            register_regions: own.memory.regions.into(),
            register_block_bytes: own.memory.region_bytes,
            vis: own.vis.into(),
            descriptors: own.descriptors.into(),
            segments: own.segments.into(),
            cqs: own.cqs.into(),
            cq_entries: own.cq_entries.into(),
            transfer_bytes: own.transfer_bytes.into(),
            mtu_bytes: own.mtu_bytes.into(),
            ptags: own.memory.tags.into(),
            levels: own.levels.0,
            read_levels: own.read_levels.0,
        }
    }
}

impl CViAttributes {
    /// Reads the attributes that the program wants for a VI.
    ///
    /// # Errors
    /// Returns `InvalidReliabilityLevel`, `InvalidMtu` or the error of the protection tag for the first
    /// attribute that is not valid.
    pub fn read(&self, nic: &mut Nic) -> Result<ViAttributes, ReturnCode> {
        Ok(ViAttributes {
            level: Level::of(self.level).ok_or(ReturnCode::InvalidReliabilityLevel)?,
            transfer_bytes: self.transfer_bytes.try_into().map_err(|_| ReturnCode::InvalidMtu)?,
            qos: self.qos.addr() as u64,
            tag: nic.tag(self.ptag)?,
            can_be_written: self.can_be_written != 0,
            can_be_read: self.can_be_read != 0,
        })
    }

    /// Returns the attributes of a local VI.
    pub fn of(nic: NicId, attributes: &ViAttributes) -> Self {
        Self {
            level: attributes.level as u16,
            transfer_bytes: attributes.transfer_bytes.into(),
            qos: ptr::without_provenance_mut(attributes.qos as usize),
            ptag: attributes.tag.give(nic),
            can_be_written: attributes.can_be_written.into(),
            can_be_read: attributes.can_be_read.into(),
        }
    }

    /// Returns the known attributes of a remote VI. Its protection tag means nothing here, so it is NULL.
    pub fn of_peer(offer: &Offer) -> Self {
        Self {
            level: offer.level as u16,
            transfer_bytes: offer.transfer_bytes.into(),
            qos: ptr::without_provenance_mut(offer.qos as usize),
            ptag: ptr::null_mut(),
            can_be_written: offer.can_be_written.into(),
            can_be_read: offer.can_be_read.into(),
        }
    }
}

impl CMemAttributes {
    /// Reads the attributes that the program wants for a memory region.
    ///
    /// # Errors
    /// Returns `InvalidPtag` if there is no such protection tag.
    pub fn read(&self, nic: &mut Nic) -> Result<MemAttributes, ReturnCode> {
        Ok(MemAttributes {
            tag: nic.tag(self.ptag)?,
            can_be_written: self.can_be_written != 0,
            can_be_read: self.can_be_read != 0,
        })
    }

    /// The attributes of memory that was registered without any: peers can neither write nor read it.
    pub const NONE: Self = Self { ptag: ptr::null_mut(), can_be_written: 0, can_be_read: 0 };

    /// Returns the attributes of a memory region.
    pub fn of(nic: NicId, attributes: &MemAttributes) -> Self {
        Self {
            ptag: attributes.tag.give(nic),
            can_be_written: attributes.can_be_written.into(),
            can_be_read: attributes.can_be_read.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netdyno_stack::vi::{AsyncError, NicAttributes, Resource, State, Status, descriptor};
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::process::Command;

    /// The bytes of the longest address: an IPv6 address with its port, and the longest discriminator.
    const LONGEST_ADDRESS: usize = 18 + 64;

    #[test]
    fn an_address_that_is_declared_as_a_variable_has_room_for_all() {
        let most = NicAttributes::default();
        assert!(usize::from(most.host_bytes) + usize::from(most.discriminator_bytes) <= LONGEST_ADDRESS);
    }

    /// Returns expressions in C, each with the value that it has here.
    fn expected() -> Vec<(&'static str, usize)> {
        vec![
            ("sizeof(VIP_DESCRIPTOR)", size_of::<Descriptor>()),
            ("VIP_DESCRIPTOR_ALIGNMENT", descriptor::ALIGNMENT as usize),
            ("offsetof(VIP_DESCRIPTOR, DS)", descriptor::CONTROL_LEN),
            ("offsetof(VIP_DESCRIPTOR, Data)", descriptor::CONTROL_LEN),
            ("offsetof(VIP_DESCRIPTOR, DS[1])", descriptor::CONTROL_LEN + descriptor::SEGMENT_LEN),
            ("offsetof(VIP_DESCRIPTOR, Data[1])", descriptor::CONTROL_LEN + descriptor::SEGMENT_LEN),
            ("offsetof(VIP_DESCRIPTOR, CS.Status)", descriptor::STATUS_AT),
            ("offsetof(VIP_DESCRIPTOR, Control.Status)", descriptor::STATUS_AT),
            ("offsetof(VIP_DATA_SEGMENT, Length)", 12),
            ("offsetof(VIP_NET_ADDRESS, HostAddress)", LENGTHS),
            ("sizeof(VIP_NET_ADDRESS)", (LENGTHS + LONGEST_ADDRESS).next_multiple_of(4)),
            ("offsetof(VIP_NET_ADDRESS, DiscriminatorLen)", offset_of!(NetAddress, discriminator_len)),
            ("sizeof(VIP_NIC_ATTRIBUTES)", size_of::<CNicAttributes>()),
            ("offsetof(VIP_NIC_ATTRIBUTES, LocalNicAddress)", offset_of!(CNicAttributes, address)),
            ("offsetof(VIP_NIC_ATTRIBUTES, MaxRegisterBytes)", offset_of!(CNicAttributes, register_bytes)),
            ("offsetof(VIP_NIC_ATTRIBUTES, MaxPtags)", offset_of!(CNicAttributes, ptags)),
            ("offsetof(VIP_NIC_ATTRIBUTES, RDMAReadSupport)", offset_of!(CNicAttributes, read_levels)),
            ("sizeof(VIP_VI_ATTRIBUTES)", size_of::<CViAttributes>()),
            ("offsetof(VIP_VI_ATTRIBUTES, Ptag)", offset_of!(CViAttributes, ptag)),
            ("offsetof(VIP_VI_ATTRIBUTES, EnableRdmaRead)", offset_of!(CViAttributes, can_be_read)),
            ("sizeof(VIP_MEM_ATTRIBUTES)", size_of::<CMemAttributes>()),
            ("offsetof(VIP_MEM_ATTRIBUTES, EnableRdmaWrite)", offset_of!(CMemAttributes, can_be_written)),
            ("sizeof(VIP_ERROR_DESCRIPTOR)", size_of::<ErrorDescriptor>()),
            ("offsetof(VIP_ERROR_DESCRIPTOR, ResourceCode)", offset_of!(ErrorDescriptor, resource)),
            ("offsetof(VIP_ERROR_DESCRIPTOR, ErrorCode)", offset_of!(ErrorDescriptor, error)),
            ("sizeof(VIP_RETURN)", size_of::<ReturnCode>()),
            ("VIP_SUCCESS", ReturnCode::Success as usize),
            ("VIP_NOT_DONE", ReturnCode::NotDone as usize),
            ("VIP_INVALID_PARAMETER", ReturnCode::InvalidParameter as usize),
            ("VIP_ERROR_RESOURCE", ReturnCode::ErrorResource as usize),
            ("VIP_TIMEOUT", ReturnCode::Timeout as usize),
            ("VIP_REJECT", ReturnCode::Reject as usize),
            ("VIP_INVALID_RELIABILITY_LEVEL", ReturnCode::InvalidReliabilityLevel as usize),
            ("VIP_INVALID_MTU", ReturnCode::InvalidMtu as usize),
            ("VIP_INVALID_QOS", ReturnCode::InvalidQos as usize),
            ("VIP_INVALID_PTAG", ReturnCode::InvalidPtag as usize),
            ("VIP_INVALID_RDMAREAD", ReturnCode::InvalidRdmaRead as usize),
            ("VIP_DESCRIPTOR_ERROR", ReturnCode::DescriptorError as usize),
            ("VIP_INVALID_STATE", ReturnCode::InvalidState as usize),
            ("VIP_ERROR_NAMESERVICE", ReturnCode::ErrorNameService as usize),
            ("VIP_NO_MATCH", ReturnCode::NoMatch as usize),
            ("VIP_NOT_REACHABLE", ReturnCode::NotReachable as usize),
            ("VIP_ERROR_NOT_SUPPORTED", ReturnCode::ErrorNotSupported as usize),
            ("VIP_STATUS_DONE", Status::DONE.0 as usize),
            ("VIP_STATUS_FORMAT_ERROR", Status::FORMAT_ERROR.0 as usize),
            ("VIP_STATUS_PROTECTION_ERROR", Status::PROTECTION_ERROR.0 as usize),
            ("VIP_STATUS_LENGTH_ERROR", Status::LENGTH_ERROR.0 as usize),
            ("VIP_STATUS_PARTIAL_ERROR", Status::PARTIAL_ERROR.0 as usize),
            ("VIP_STATUS_DESC_FLUSHED_ERROR", Status::FLUSHED.0 as usize),
            ("VIP_STATUS_TRANSPORT_ERROR", Status::TRANSPORT_ERROR.0 as usize),
            ("VIP_STATUS_RDMA_PROT_ERROR", Status::RDMA_PROT_ERROR.0 as usize),
            ("VIP_STATUS_REMOTE_DESC_ERROR", Status::REMOTE_DESC_ERROR.0 as usize),
            ("VIP_STATUS_ERROR_MASK", Status::ERRORS.0 as usize),
            ("VIP_STATUS_OP_SEND", Status::OP_SEND.0 as usize),
            ("VIP_STATUS_OP_RECEIVE", Status::OP_RECEIVE.0 as usize),
            ("VIP_STATUS_OP_RDMA_WRITE", Status::OP_WRITE.0 as usize),
            ("VIP_STATUS_OP_REMOTE_RDMA_WRITE", Status::OP_REMOTE_WRITE.0 as usize),
            ("VIP_STATUS_OP_RDMA_READ", Status::OP_READ.0 as usize),
            ("VIP_STATUS_IMMEDIATE", Status::IMMEDIATE.0 as usize),
            ("VIP_SERVICE_UNRELIABLE", Level::Unreliable as usize),
            ("VIP_SERVICE_RELIABLE_DELIVERY", Level::Delivery as usize),
            ("VIP_SERVICE_RELIABLE_RECEPTION", Level::Reception as usize),
            ("sizeof(VIP_VI_STATE)", size_of::<State>()),
            ("VIP_STATE_IDLE", State::Idle as usize),
            ("VIP_STATE_CONNECTED", State::Connected as usize),
            ("VIP_STATE_CONNECT_PENDING", State::ConnectPending as usize),
            ("VIP_STATE_ERROR", State::Error as usize),
            ("VIP_ERROR_POST_DESC", AsyncError::PostDesc as usize),
            ("VIP_ERROR_CONN_LOST", AsyncError::ConnLost as usize),
            ("VIP_ERROR_RECVQ_EMPTY", AsyncError::RecvqEmpty as usize),
            ("VIP_ERROR_VI_OVERRUN", AsyncError::ViOverrun as usize),
            ("VIP_ERROR_RDMAW_PROT", AsyncError::RdmawProt as usize),
            ("VIP_ERROR_RDMAW_DATA", AsyncError::RdmawData as usize),
            ("VIP_ERROR_RDMAW_ABORT", AsyncError::RdmawAbort as usize),
            ("VIP_ERROR_RDMAR_PROT", AsyncError::RdmarProt as usize),
            ("VIP_ERROR_COMP_PROT", AsyncError::CompProt as usize),
            ("VIP_ERROR_RDMA_TRANSPORT", AsyncError::RdmaTransport as usize),
            ("VIP_ERROR_CATASTROPHIC", AsyncError::Catastrophic as usize),
            ("VIP_RESOURCE_NIC", Resource::Nic as usize),
            ("VIP_RESOURCE_VI", Resource::Vi as usize),
            ("VIP_RESOURCE_CQ", Resource::Cq as usize),
            ("VIP_RESOURCE_DESCRIPTOR", Resource::Descriptor as usize),
        ]
    }

    #[test]
    fn the_structures_and_numbers_are_those_of_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let [source, program] = ["abi.c", "abi"].map(|name| folder.path().join(name));
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n#include <vipl.h>\n");
        text.push_str("int main(void) {\n");
        let expected = expected();
        for (expression, _) in &expected {
            writeln!(text, "printf(\"%llu\\n\", (unsigned long long)({expression}));").unwrap();
        }
        text.push_str("return 0; }\n");
        std::fs::write(&source, text).unwrap();
        let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
        let built = Command::new("cc").arg(include).arg(&source).arg("-o").arg(&program).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
        let theirs: Vec<usize> = said.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(theirs.len(), expected.len());
        for ((expression, ours), theirs) in expected.iter().zip(theirs) {
            assert_eq!(*ours, theirs, "{expression}");
        }
    }
}
