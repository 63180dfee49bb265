//! The translation table of an endpoint.

use crate::code::Code;
use crate::name::Name;
use crate::objects::{Endpoint, FEWEST_TRANSLATIONS, MOST_TRANSLATIONS, Translation};
use crate::refusal::{Refusal, refuse};

impl Endpoint {
    /// Sets an entry of the translation table that is not in use.
    ///
    /// # Errors
    /// Returns `BadArg` if there is no such entry, and `Resource` if it is in use, or if the endpoint is open.
    pub fn map(&self, index: usize, name: Name, tag: u64) -> Result<(), Refusal> {
        self.check_closed()?;
        if !name.is_valid() {
            return Err(refuse(Code::BadArg, "that is no name of an endpoint"));
        }
        let mut translations = self.translations.borrow_mut();
        match translations.get_mut(index) {
            None => Err(refuse(Code::BadArg, "the translation table has no such entry")),
            Some(Some(_)) => Err(refuse(Code::Resource, "the entry is in use: AM_UnMap frees it")),
            Some(entry) => {
                *entry = Some(Translation { name, tag, peer: None });
                Ok(())
            }
        }
    }

    /// Returns the first entry that is not in use.
    ///
    /// # Errors
    /// Returns `Resource` if all are in use.
    pub fn free_entry(&self) -> Result<usize, Refusal> {
        let at = self.translations.borrow().iter().position(Option::is_none);
        at.ok_or_else(|| refuse(Code::Resource, "all entries of the translation table are in use"))
    }

    /// Frees an entry.
    ///
    /// # Errors
    /// Returns `BadArg` if there is no such entry, and `Resource` if it is not in use, or if the endpoint is open.
    pub fn unmap(&self, index: usize) -> Result<(), Refusal> {
        self.translation(index)?;
        self.check_closed()?;
        self.translations.borrow_mut()[index] = None;
        Ok(())
    }

    /// Returns an entry.
    ///
    /// # Errors
    /// Returns `BadArg` if there is no such entry, and `Resource` if it is not in use.
    pub fn translation(&self, index: usize) -> Result<Translation, Refusal> {
        match self.translations.borrow().get(index) {
            None => Err(refuse(Code::BadArg, "the translation table has no such entry")),
            Some(entry) => entry.ok_or_else(|| refuse(Code::Resource, "the entry is not in use")),
        }
    }

    /// Changes the tag of an entry in use.
    ///
    /// # Errors
    /// As of [`Endpoint::translation`].
    pub fn retag(&self, index: usize, tag: u64) -> Result<(), Refusal> {
        let entry = Translation { tag, ..self.translation(index)? };
        self.translations.borrow_mut()[index] = Some(entry);
        let mut peers = self.peers.borrow_mut();
        let those = peers.iter_mut().filter(|peer| peer.translation == Some(index) && peer.tag.is_some());
        those.for_each(|peer| peer.tag = Some(tag));
        Ok(())
    }

    /// Changes the length of the translation table.
    ///
    /// # Errors
    /// Returns `Resource` if the length is not possible, if an entry in use would go, or if the endpoint is open.
    pub fn resize(&self, len: usize) -> Result<(), Refusal> {
        if len > MOST_TRANSLATIONS {
            return Err(refuse(Code::Resource, "a translation table has at most 65536 entries"));
        }
        let len = len.max(FEWEST_TRANSLATIONS);
        let mut translations = self.translations.borrow_mut();
        if len == translations.len() {
            return Ok(());
        }
        self.check_closed()?;
        if translations.iter().skip(len).any(Option::is_some) {
            return Err(refuse(Code::Resource, "entries in use would go: AM_UnMap frees them"));
        }
        translations.resize(len, None);
        Ok(())
    }

    /// Returns the index of the entry with a name.
    pub fn index_of(&self, name: &Name) -> Option<usize> {
        self.translations.borrow().iter().position(|entry| entry.is_some_and(|entry| entry.name == *name))
    }

    /// Reports whether exactly one entry has this name.
    pub fn has_one_entry(&self, name: &Name) -> bool {
        self.translations.borrow().iter().flatten().filter(|entry| entry.name == *name).count() == 1
    }

    fn check_closed(&self) -> Result<(), Refusal> {
        if self.is_open() {
            return Err(refuse(Code::Resource, "the table is fixed since AM_SetExpectedResources"));
        }
        Ok(())
    }
}
