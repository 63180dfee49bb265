//! Things under handles. A handle names a place and how often the place was used before, so that
//! the handle of what is gone is refused, also where something else has taken the place.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Most things that a table holds, whatever its limit.
pub const MOST: u32 = 1 << 16;

/// No room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Defines a handle: 32 bits that a program is given, keeps and hands back. None is 0.
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
    /// Never 0, and another one for each that is put here, for 65535 of them.
    generation: u16,
    thing: Option<T>,
}

/// Things of one kind under their handles.
#[derive(Clone, Debug)]
pub struct Table<H, T> {
    places: Vec<Place<T>>,
    /// Places that were used before, the one that is free for longest first.
    free: VecDeque<u16>,
    most: u32,
    handles: PhantomData<H>,
}

impl<H: Copy + From<u32> + Into<u32>, T> Table<H, T> {
    /// An empty table for so many things at most.
    pub fn new(most: u32) -> Self {
        Self { places: Vec::new(), free: VecDeque::new(), most: most.min(MOST), handles: PhantomData }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether one more would be too many.
    pub fn is_full(&self) -> bool {
        self.count() >= self.most as usize
    }

    /// Puts one thing more there.
    ///
    /// # Errors
    /// There is no room.
    pub fn insert(&mut self, thing: T) -> Result<H, Full> {
        if self.is_full() {
            return Err(Full);
        }
        let at = match self.free.pop_front() {
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

    /// What is under a handle.
    #[inline]
    pub fn get(&self, handle: H) -> Option<&T> {
        let (at, generation) = Self::parts(handle);
        self.places.get(at).filter(|place| place.generation == generation)?.thing.as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, handle: H) -> Option<&mut T> {
        let (at, generation) = Self::parts(handle);
        self.places.get_mut(at).filter(|place| place.generation == generation)?.thing.as_mut()
    }

    /// Takes it away. The handle is refused from now on.
    pub fn remove(&mut self, handle: H) -> Option<T> {
        let (at, generation) = Self::parts(handle);
        let place = self.places.get_mut(at).filter(|place| place.generation == generation)?;
        let thing = place.thing.take()?;
        self.free.push_back(at as u16);
        Some(thing)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (H, &T)> {
        let things = self.places.iter().enumerate();
        things.filter_map(|(at, place)| Some((Self::handle(at, place.generation), place.thing.as_ref()?)))
    }

    /// The handles of all, to go through them and change them.
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
