//! Sizes in powers.

/// Factor between consecutive sizes.
const STEP: usize = 4;

/// Returns the sizes from one byte up to `largest`: powers of four, and `largest`.
pub(crate) fn up_to(largest: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1usize), |size| size.checked_mul(STEP));
    powers.take_while(|&size| size < largest).chain([largest]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_ascend_to_the_largest(largest in 1usize..=1 << 40) {
            let sizes = up_to(largest);
            prop_assert_eq!(sizes.last(), Some(&largest));
            prop_assert!(sizes.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= STEP * pair[0]));
        }
    }
}
