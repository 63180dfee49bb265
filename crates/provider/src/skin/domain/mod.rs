//! A domain: it owns the engine.

mod region;

use super::agent::Agent;
use super::guard::{Errno, entries, missing};
use super::object::{self, Object};
use super::state::Shared;
use super::{addresses, counter, endpoint, poll, queue};
use crate::abi::{
    self, Av, AvAttr, Cntr, CntrAttr, Cq, CqAttr, Domain, DomainOps, Ep, Fid, Info, MrOps, Opaque, Ops, Poll,
    PollAttr,
};
use crate::links::ViLinks;
use core::ffi::{c_int, c_uint, c_void};
use std::io::{self, Write};
use std::sync::Arc;

#[repr(C)]
pub struct DomainObject {
    header: Domain,
    pub shared: Arc<Shared>,
    /// The messaging thread, which holds the state as well.
    agent: Option<Agent>,
}

// SAFETY: the object begins with a `fid_domain`.
unsafe impl Object for DomainObject {
    type Header = Domain;
}

static OPS: Ops = object::ops(close);
static DOMAIN_OPS: DomainOps = DomainOps {
    size: size_of::<DomainOps>(),
    av_open: Some(open_av),
    cq_open: Some(open_cq),
    endpoint: Some(open_endpoint),
    scalable_ep: Some(no_scalable),
    cntr_open: Some(open_counter),
    poll_open: Some(open_poll_set),
    stx_ctx: Some(no_shared_transmit),
    srx_ctx: Some(no_shared_receive),
    query_atomic: Some(endpoint::query_atomic),
    query_collective: Some(no_collective),
    endpoint2: Some(open_endpoint_2),
};
static REGION_OPS: MrOps = MrOps {
    size: size_of::<MrOps>(),
    reg: Some(region::register),
    regv: Some(region::register_segments),
    regattr: Some(region::register_attributes),
};

missing! {
    fn no_scalable(*mut Domain, *mut Info, *mut *mut Ep, Opaque) -> c_int;
    fn no_shared_transmit(*mut Domain, *mut abi::TxAttr, *mut *mut c_void, Opaque) -> c_int;
    fn no_shared_receive(*mut Domain, *mut abi::RxAttr, *mut *mut Ep, Opaque) -> c_int;
    fn no_collective(*mut Domain, c_uint, *mut c_void, u64) -> c_int;
}

/// Opens a domain.
pub fn open(context: Opaque) -> Result<*mut Domain, Errno> {
    let links = ViLinks::open().map_err(|error| {
        // The caller gets a number, which does not say what to do.
        // In one piece, because others write to the same terminal or pipe.
        let _ = io::stderr().write_all(format!("netdyno provider: {error}\n").as_bytes());
        Errno(abi::ENODEV)
    })?;
    let header = Domain {
        fid: object::fid(abi::CLASS_DOMAIN, context, &OPS),
        ops: object::table(&DOMAIN_OPS),
        mr: object::table(&REGION_OPS),
    };
    let shared = Arc::new(Shared::new(links));
    let agent = Agent::start(&shared).map_err(|_| Errno(abi::EAGAIN))?;
    Ok(DomainObject { header, shared, agent }.give())
}

/// Returns the state of a domain.
///
/// # Safety
/// The pointer must lead to an open domain.
pub unsafe fn shared<P>(domain: *mut P) -> Result<Arc<Shared>, Errno> {
    // SAFETY: as the caller has promised.
    Ok(unsafe { DomainObject::of(domain) }?.shared.clone())
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        let domain = DomainObject::of(fid)?;
        // The objects of the domain that are open hold its state.
        if Arc::strong_count(&domain.shared) > 1 + usize::from(domain.agent.is_some()) {
            return Err(Errno(abi::EBUSY));
        }
        let DomainObject { shared, agent, .. } = *DomainObject::take(fid);
        shared.flush();
        agent.into_iter().for_each(|agent| agent.end(&shared));
        Ok(0)
    }

    fn open_av(domain: *mut Domain, attr: *mut AvAttr, av: *mut *mut Av, context: Opaque) -> c_int {
        *av = addresses::open(shared(domain)?, attr.as_ref(), context)?;
        Ok(0)
    }

    fn open_cq(domain: *mut Domain, attr: *mut CqAttr, cq: *mut *mut Cq, context: Opaque) -> c_int {
        *cq = queue::open(shared(domain)?, attr.as_mut(), context)?;
        Ok(0)
    }

    fn open_counter(domain: *mut Domain, attr: *mut CntrAttr, cntr: *mut *mut Cntr, context: Opaque) -> c_int {
        *cntr = counter::open(shared(domain)?, attr.as_ref(), context)?;
        Ok(0)
    }

    fn open_poll_set(_domain: *mut Domain, attr: *mut PollAttr, set: *mut *mut Poll) -> c_int {
        *set = poll::open(attr.as_ref())?;
        Ok(0)
    }

    fn open_endpoint(domain: *mut Domain, info: *mut Info, ep: *mut *mut Ep, context: Opaque) -> c_int {
        Ok(open_endpoint_2(domain, info, ep, 0, context))
    }

    fn open_endpoint_2(
        domain: *mut Domain,
        info: *mut Info,
        ep: *mut *mut Ep,
        flags: u64,
        context: Opaque,
    ) -> c_int {
        if flags != 0 {
            return Err(Errno(abi::EINVAL));
        }
        *ep = endpoint::open(shared(domain)?, info.as_ref(), context)?;
        Ok(0)
    }
}
