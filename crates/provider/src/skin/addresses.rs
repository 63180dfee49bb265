//! An address vector (fi_av(3)). A program names the endpoints of peers by numbers, in the order of their insertion.

use super::guard::{Errno, entries, missing};
use super::object::{self, Object, copy_text};
use super::resolve::resolve;
use super::state::{AddressVector, Shared, State};
use crate::abi::{self, Av, AvAttr, AvOps, Fid, Opaque, Ops};
use crate::engine::{Target, source};
use crate::links::{NAME_LEN, Name};
use core::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::{ptr, slice};

#[repr(C)]
pub struct AvObject {
    header: Av,
    shared: Arc<Shared>,
    pub number: usize,
}

// SAFETY: the object begins with a `fid_av`.
unsafe impl Object for AvObject {
    type Header = Av;
}

static OPS: Ops = object::ops(close);
static AV_OPS: AvOps = AvOps {
    size: size_of::<AvOps>(),
    insert: Some(insert),
    insertsvc: Some(insert_service),
    insertsym: Some(no_insert_symmetric),
    remove: Some(remove),
    lookup: Some(lookup),
    straddr: Some(straddr),
    av_set: Some(no_set),
};

missing! {
    fn no_insert_symmetric(*mut Av, *const c_char, usize, *const c_char, usize, *mut u64, u64, Opaque) -> c_int;
    fn no_set(*mut Av, *mut c_void, *mut *mut c_void, Opaque) -> c_int;
}

/// Opens an address vector.
pub fn open(shared: Arc<Shared>, attr: Option<&AvAttr>, context: Opaque) -> Result<*mut Av, Errno> {
    if attr.is_some_and(|attr| !attr.name.is_null() || attr.rx_ctx_bits != 0) {
        return Err(Errno(abi::ENOSYS));
    }
    let number = shared.lock().addresses.insert(AddressVector::default());
    let header = Av { fid: object::fid(abi::CLASS_AV, context, &OPS), ops: object::table(&AV_OPS) };
    Ok(AvObject { header, shared, number }.give())
}

/// Inserts an address. Returns its number.
fn insert_one(state: &mut State, number: usize, name: Name) -> Result<u64, Errno> {
    let peer = state.engine.links.peer(&name.process);
    let vector = state.addresses.get_mut(number).ok_or(Errno(abi::EBADF))?;
    let entry = vector.entries.insert((name, Target { peer, endpoint: name.endpoint })) as u64;
    vector.by_source.entry(source(peer, name.endpoint)).or_default().push(entry);
    Ok(entry)
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        let AvObject { shared, number, .. } = AvObject::of(fid)?;
        let mut state = shared.lock();
        state.check_addresses(*number)?;
        state.addresses.try_remove(*number);
        drop(state);
        drop(AvObject::take(fid));
        Ok(0)
    }

    fn insert(
        av: *mut Av,
        addr: *const c_void,
        count: usize,
        fi_addr: *mut u64,
        flags: u64,
        context: Opaque,
    ) -> c_int {
        let av = AvObject::of(av)?;
        // The program asks for an error number of each address.
        let errors = if flags & abi::SYNC_ERR != 0 { context.cast::<c_int>() } else { ptr::null_mut() };
        if addr.is_null() && count > 0 {
            return Err(Errno(abi::EINVAL));
        }
        let all = if count == 0 { &[][..] } else { slice::from_raw_parts(addr.cast::<[u8; NAME_LEN]>(), count) };
        let mut state = av.shared.lock();
        let mut inserted = 0;
        for (at, bytes) in all.iter().enumerate() {
            let name = Name::parse(bytes).ok_or(Errno(abi::EINVAL));
            let number = name.and_then(|name| insert_one(&mut state, av.number, name));
            inserted += c_int::from(number.is_ok());
            if !errors.is_null() {
                *errors.add(at) = number.as_ref().err().map_or(0, |error| error.0 as c_int);
            }
            if !fi_addr.is_null() {
                *fi_addr.add(at) = number.unwrap_or(abi::ADDR_NOTAVAIL);
            }
        }
        Ok(inserted)
    }

    /// Inserts the endpoint that serves a port of a host.
    fn insert_service(
        av: *mut Av,
        node: *const c_char,
        service: *const c_char,
        fi_addr: *mut u64,
        _flags: u64,
        _context: Opaque,
    ) -> c_int {
        let name = resolve(node, service)?;
        let av = AvObject::of(av)?;
        let number = insert_one(&mut av.shared.lock(), av.number, name)?;
        if !fi_addr.is_null() {
            *fi_addr = number;
        }
        Ok(1)
    }

    fn remove(av: *mut Av, fi_addr: *mut u64, count: usize, _flags: u64) -> c_int {
        let av = AvObject::of(av)?;
        let mut state = av.shared.lock();
        let vector = state.addresses.get_mut(av.number).ok_or(Errno(abi::EBADF))?;
        let all = if count == 0 { &[][..] } else { slice::from_raw_parts(fi_addr, count) };
        for address in all {
            let Some((_, target)) = vector.entries.try_remove(*address as usize) else {
                return Err(Errno(abi::EINVAL));
            };
            let source = source(target.peer, target.endpoint);
            if let Some(numbers) = vector.by_source.get_mut(&source) {
                numbers.retain(|number| *number != *address);
                if numbers.is_empty() {
                    vector.by_source.remove(&source);
                }
            }
        }
        Ok(0)
    }

    fn lookup(av: *mut Av, fi_addr: u64, addr: *mut c_void, addrlen: *mut usize) -> c_int {
        let av = AvObject::of(av)?;
        let state = av.shared.lock();
        let vector = state.addresses.get(av.number).ok_or(Errno(abi::EBADF))?;
        let (name, _) = vector.entries.get(fi_addr as usize).ok_or(Errno(abi::EINVAL))?;
        let bytes = name.encode();
        ptr::copy_nonoverlapping(bytes.as_ptr(), addr.cast(), bytes.len().min(*addrlen));
        *addrlen = bytes.len();
        Ok(0)
    }

    /// Writes an address as a string.
    fn straddr(_av: *mut Av, addr: *const c_void, buf: *mut c_char, len: *mut usize) -> *const c_char {
        let name = Name::parse(slice::from_raw_parts(addr.cast::<u8>(), NAME_LEN));
        let text = name.map_or_else(|| "fi_netdyno://?".into(), |name| name.to_string());
        copy_text(text.as_bytes(), buf, *len);
        *len = text.len() + 1;
        Ok(buf.cast_const())
    }
}
