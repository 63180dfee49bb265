//! The known costs of memory that is registered in virtual time.
//!
//! A page has 4096 bytes. A cost has a part for each call and a part for each page. A page is created
//! when it is first touched, registered or locked, which costs `fault` in addition.
//!
//! With `cached` there is a registration cache: to register memory that it has costs `cached`. Without
//! `cached`, memory that is registered already is registered anew at full cost. With `kept` the cache
//! keeps memory that was deregistered. On the command line:
//! `register=1us+50ns/page,fault=250ns,cached=100ns,kept=on,deregister=500ns+10ns/page,`
//! `lock=1us+30ns/page,unlock=300ns+5ns/page,lock_limit=8MiB,create=5us`.

use super::values::{Ps, TruthError, bytes, duration, error, switch};

/// Length of a page, bytes.
pub const PAGE: usize = 4096;

/// The cost of an operation on whole pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Cost of a call.
    pub call_ps: Ps,
    /// Cost of each page.
    pub page_ps: Ps,
}

impl Cost {
    /// Returns the cost for `bytes`.
    pub fn of(&self, bytes: usize) -> Ps {
        self.call_ps + pages(bytes) * self.page_ps
    }
}

pub(super) fn pages(bytes: usize) -> Ps {
    bytes.div_ceil(PAGE) as Ps
}

/// The known costs of memory. A missing one is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryTruth {
    /// Cost of registering memory that is not in the cache.
    pub register: Option<Cost>,
    /// Cost of creating a page.
    pub fault_ps: Option<Ps>,
    /// Cost of registering and of deregistering memory that is in the cache; `None`: no cache.
    pub cached_ps: Option<Ps>,
    /// Whether the cache keeps deregistered memory.
    pub kept: Option<bool>,
    /// Cost of deregistering memory.
    pub deregister: Option<Cost>,
    /// Cost of locking memory.
    pub lock: Option<Cost>,
    /// Cost of unlocking memory.
    pub unlock: Option<Cost>,
    /// Most bytes that can be locked.
    pub lock_limit_bytes: Option<usize>,
    /// Cost of creating the objects that transfers need besides memory, whatever its size.
    pub create_ps: Option<Ps>,
}

impl MemoryTruth {
    /// Parses a parameter of this model. Returns whether it is the first of its name, or `None` if the
    /// name belongs to another model.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<Option<bool>, TruthError> {
        Ok(Some(match name {
            "register" => self.register.replace(cost(name, value)?).is_none(),
            "fault" => self.fault_ps.replace(duration(name, value)?).is_none(),
            "cached" => self.cached_ps.replace(duration(name, value)?).is_none(),
            "kept" => self.kept.replace(switch(name, value)?).is_none(),
            "deregister" => self.deregister.replace(cost(name, value)?).is_none(),
            "lock" => self.lock.replace(cost(name, value)?).is_none(),
            "unlock" => self.unlock.replace(cost(name, value)?).is_none(),
            "lock_limit" => self.lock_limit_bytes.replace(bytes(name, value)?).is_none(),
            "create" => self.create_ps.replace(duration(name, value)?).is_none(),
            _ => return Ok(None),
        }))
    }
}

/// Parses a cost, such as `1us+50ns/page`, or one of the two parts.
fn cost(name: &str, text: &str) -> Result<Cost, TruthError> {
    let (mut call, mut page) = (None, None);
    for part in text.split('+') {
        let is_first = match part.strip_suffix("/page") {
            Some(part) => page.replace(duration(name, part)?).is_none(),
            None => call.replace(duration(name, part)?).is_none(),
        };
        if !is_first {
            return Err(error(format_args!(
                "{name}={text} has a part twice: use one time a call and one a page, as in {name}=1us+50ns/page"
            )));
        }
    }
    Ok(Cost { call_ps: call.unwrap_or(0), page_ps: page.unwrap_or(0) })
}
