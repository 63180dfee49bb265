//! Tables of objects under handles. A handle has the index of a slot and the slot's generation. So the
//! handle of a removed object is refused, even if the slot has another object.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Most objects of a table, whatever its limit.
pub const MOST: u32 = 1 << 16;

/// The table or queue has no room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Defines a handle type: 32 bits that a program is given, keeps and passes back. No handle is 0.
macro_rules! handle {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl From<u32> for $name {
            fn from(raw: u32) -> Self {
                Self(raw)
            }
        }

        impl From<$name> for u32 {
            fn from(handle: $name) -> Self {
                handle.0
            }
        }
    };
}
pub(super) use handle;

#[derive(Clone, Debug)]
struct Place<T> {
    /// Counts the objects put here, modulo 65535, and is never 0.
    generation: u16,
    thing: Option<T>,
}

/// The number of free slots from which on they are used again.
const RESTING: usize = 256;

/// A table of objects of one type under their handles.
#[derive(Clone, Debug)]
pub struct Table<H, T> {
    places: Vec<Place<T>>,
    /// Free slots that were used before, in the order in which they became free.
    free: VecDeque<u16>,
    most: u32,
    handles: PhantomData<H>,
}

impl<H: Copy + From<u32> + Into<u32>, T> Table<H, T> {
    /// Creates an empty table for at most `most` objects.
    pub fn new(most: u32) -> Self {
        Self { places: Vec::new(), free: VecDeque::new(), most: most.min(MOST), handles: PhantomData }
    }

    /// Returns the number of objects.
    pub fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Reports whether there is no room for one more object.
    pub fn is_full(&self) -> bool {
        self.count() >= self.most as usize
    }

    /// Adds an object and returns its handle.
    ///
    /// # Errors
    /// Returns `Full` if there is no room.
    pub fn insert(&mut self, thing: T) -> Result<H, Full> {
        if self.is_full() {
            return Err(Full);
        }
        // A slot rests for a while, so that it takes millions of turns until a handle comes again.
        let is_rested = self.free.len() >= RESTING.min(self.most as usize / 2);
        let is_needed = self.places.len() >= self.most as usize;
        let rested = if is_rested || is_needed { self.free.pop_front() } else { None };
        let at = match rested {
            Some(at) => usize::from(at),
            None => {
                self.places.push(Place { generation: 0, thing: None });
                self.places.len() - 1
            }
        };
        let place = &mut self.places[at];
        place.generation = place.generation.checked_add(1).unwrap_or(1);
        place.thing = Some(thing);
        Ok(Self::handle(at, place.generation))
    }

    /// Returns the object of a handle.
    #[inline]
    pub fn get(&self, handle: H) -> Option<&T> {
        let (at, generation) = Self::parts(handle);
        self.places.get(at).filter(|place| place.generation == generation)?.thing.as_ref()
    }

    /// Returns the object of a handle, mutable.
    #[inline]
    pub fn get_mut(&mut self, handle: H) -> Option<&mut T> {
        let (at, generation) = Self::parts(handle);
        self.places.get_mut(at).filter(|place| place.generation == generation)?.thing.as_mut()
    }

    /// Removes an object. Its handle is refused from now on.
    pub fn remove(&mut self, handle: H) -> Option<T> {
        let (at, generation) = Self::parts(handle);
        let place = self.places.get_mut(at).filter(|place| place.generation == generation)?;
        let thing = place.thing.take()?;
        self.free.push_back(at as u16);
        Some(thing)
    }

    /// Returns all objects with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (H, &T)> {
        let things = self.places.iter().enumerate();
        things.filter_map(|(at, place)| Some((Self::handle(at, place.generation), place.thing.as_ref()?)))
    }

    /// Returns all handles, for loops that change the objects.
    pub fn handles(&self) -> Vec<H> {
        self.iter().map(|(handle, _)| handle).collect()
    }

    fn handle(at: usize, generation: u16) -> H {
        (u32::from(generation) << 16 | at as u32).into()
    }

    #[inline]
    fn parts(handle: H) -> (usize, u16) {
        let raw = handle.into();
        ((raw & 0xffff) as usize, (raw >> 16) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    handle!(Name);

    #[test]
    fn a_stale_handle_is_refused() {
        let mut table = Table::<Name, u8>::new(2);
        let first = table.insert(1).unwrap();
        assert_ne!(first.0, 0);
        assert_eq!(table.remove(first), Some(1));
        for thing in 2..=255 {
            let next = table.insert(thing).unwrap();
            assert_eq!(table.remove(first), None);
            assert_eq!(table.get(first), None);
            assert_eq!((table.get(next), table.count()), (Some(&thing), 1));
            assert_eq!(table.remove(next), Some(thing));
        }
    }

    #[test]
    fn a_handle_comes_again_only_after_millions_of_turns() {
        let mut table = Table::<Name, ()>::new(1 << 16);
        let first = table.insert(()).unwrap();
        table.remove(first).unwrap();
        for _ in 0..200_000 {
            let next = table.insert(()).unwrap();
            assert_ne!(next.0, first.0);
            table.remove(next).unwrap();
        }
        assert!(table.places.len() <= RESTING + 1);
    }

    #[test]
    fn handles_are_never_zero_also_when_generations_wrap() {
        let mut table = Table::<Name, ()>::new(1);
        for _ in 0..200_000 {
            let handle = table.insert(()).unwrap();
            assert!(handle.0 >> 16 != 0);
            assert_eq!(table.insert(()), Err(Full));
            table.remove(handle).unwrap();
        }
    }

    #[test]
    fn no_handle_that_was_not_given_is_taken() {
        let mut table = Table::<Name, u8>::new(3);
        let given = [1, 2, 3].map(|thing| table.insert(thing).unwrap());
        for raw in (0..4 << 16).step_by(1) {
            assert_eq!(table.get(Name(raw)).is_some(), given.contains(&Name(raw)));
        }
        assert_eq!(table.handles(), given);
    }
}
