//! Words in a segment of the own rank, and random words.

use netdyno_global::{Error, Segment, World};

/// Allocates a segment of words, all zero. It has one word at least.
pub fn allocate(world: &mut World, words: usize) -> Result<Segment, Error> {
    world.allocate(size_of::<u64>() * words.max(1))
}

/// Returns the word of a stream with this number (SplitMix64).
pub fn random(stream: u64, nth: u64) -> u64 {
    let mix = |z: u64, shift: u32, factor: u64| (z ^ (z >> shift)).wrapping_mul(factor);
    let finish = |z: u64| {
        let z = mix(mix(z, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    // Streams begin at places that have nothing to do with each other.
    finish(finish(stream).wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}
