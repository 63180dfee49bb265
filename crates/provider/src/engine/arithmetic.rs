//! The operations of fi_atomic(3) on values.

/// The operation of an atomic access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// The lesser value.
    Min,
    /// The greater value.
    Max,
    /// The sum. Integers wrap around.
    Sum,
    /// The product. Integers wrap around.
    Product,
    /// 1 if either value is not 0, else 0.
    LogicalOr,
    /// 1 if both values are not 0, else 0.
    LogicalAnd,
    /// Each bit that is set in either value.
    BitOr,
    /// Each bit that is set in both values.
    BitAnd,
    /// 1 if exactly one value is not 0, else 0.
    LogicalXor,
    /// Each bit that is set in exactly one value.
    BitXor,
    /// The value stays.
    Read,
    /// The operand.
    Write,
    /// The operand, if the comparand equals the value.
    SwapIfEqual,
    /// The operand, if the comparand does not equal the value.
    SwapIfUnequal,
    /// The operand, if the comparand is less than or equal to the value.
    SwapIfLessOrEqual,
    /// The operand, if the comparand is less than the value.
    SwapIfLess,
    /// The operand, if the comparand is greater than or equal to the value.
    SwapIfGreaterOrEqual,
    /// The operand, if the comparand is greater than the value.
    SwapIfGreater,
    /// The bits of the operand that are set in the comparand; the other bits stay.
    SwapMasked,
}

impl Operation {
    const ALL: [Self; 19] = [
        Self::Min,
        Self::Max,
        Self::Sum,
        Self::Product,
        Self::LogicalOr,
        Self::LogicalAnd,
        Self::BitOr,
        Self::BitAnd,
        Self::LogicalXor,
        Self::BitXor,
        Self::Read,
        Self::Write,
        Self::SwapIfEqual,
        Self::SwapIfUnequal,
        Self::SwapIfLessOrEqual,
        Self::SwapIfLess,
        Self::SwapIfGreaterOrEqual,
        Self::SwapIfGreater,
        Self::SwapMasked,
    ];

    /// Returns the operation of a number of libfabric (`enum fi_op`).
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Returns whether it compares with a third value.
    pub const fn compares(self) -> bool {
        self as u8 >= Self::SwapIfEqual as u8
    }
}

/// The type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Datatype {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Datatype {
    const ALL: [Self; 10] = [
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// Returns the type of a number of libfabric (`enum fi_datatype`); `None` for complex, extended and other types.
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Returns the length of a value in bytes.
    pub const fn len(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Returns whether there is such an operation on values of this type.
    pub const fn has(self, operation: Operation) -> bool {
        let is_of_bits = matches!(
            operation,
            Operation::BitOr | Operation::BitAnd | Operation::BitXor | Operation::SwapMasked
        );
        !is_of_bits || !matches!(self, Self::F32 | Self::F64)
    }
}

/// Returns the value that an operation leaves, or `None` if the type has no such operation.
macro_rules! result {
    ($number:ty, $operation:expr, $old:expr, $operand:expr, $comparand:expr, $sum:expr, $product:expr, $bits:expr) => {{
        type Number = $number;
        let (old, operand, comparand): (Number, Number, Number) = ($old, $operand, $comparand);
        let zero = Number::default();
        let truth = |is_true: bool| if is_true { 1 as Number } else { zero };
        let swap = |is_swapped: bool| if is_swapped { operand } else { old };
        match $operation {
            Operation::Min => {
                if operand < old {
                    operand
                } else {
                    old
                }
            }
            Operation::Max => {
                if operand > old {
                    operand
                } else {
                    old
                }
            }
            Operation::Sum => $sum(old, operand),
            Operation::Product => $product(old, operand),
            Operation::LogicalOr => truth(old != zero || operand != zero),
            Operation::LogicalAnd => truth(old != zero && operand != zero),
            Operation::LogicalXor => truth((old != zero) != (operand != zero)),
            Operation::Read => old,
            Operation::Write => operand,
            Operation::SwapIfEqual => swap(comparand == old),
            Operation::SwapIfUnequal => swap(comparand != old),
            Operation::SwapIfLessOrEqual => swap(comparand <= old),
            Operation::SwapIfLess => swap(comparand < old),
            Operation::SwapIfGreaterOrEqual => swap(comparand >= old),
            Operation::SwapIfGreater => swap(comparand > old),
            other => $bits(other, old, operand, comparand),
        }
    }};
}

/// Applies an operation to one value after the other. `target` has whole values; the operands and comparands are as
/// long, or empty where the operation has none. Returns false if the type has no such operation.
pub fn apply(
    operation: Operation,
    datatype: Datatype,
    target: &mut [u8],
    operands: &[u8],
    comparands: &[u8],
) -> bool {
    macro_rules! each {
        ($number:ty, $sum:expr, $product:expr, $bits:expr) => {{
            const LEN: usize = size_of::<$number>();
            let value = |bytes: &[u8], at: usize| {
                bytes
                    .get(at..at + LEN)
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(0 as $number, <$number>::from_ne_bytes)
            };
            for at in (0..target.len()).step_by(LEN) {
                let (old, operand, comparand) =
                    (value(target, at), value(operands, at), value(comparands, at));
                let new = result!($number, operation, old, operand, comparand, $sum, $product, $bits);
                if let Some(place) = target.get_mut(at..at + LEN) {
                    place.copy_from_slice(&new.to_ne_bytes());
                }
            }
        }};
    }
    macro_rules! integers {
        ($number:ty) => {
            each!(
                $number,
                <$number>::wrapping_add,
                <$number>::wrapping_mul,
                |operation, old: $number, operand: $number, mask: $number| {
                    match operation {
                        Operation::BitOr => old | operand,
                        Operation::BitAnd => old & operand,
                        Operation::BitXor => old ^ operand,
                        _ => (operand & mask) | (old & !mask),
                    }
                }
            )
        };
    }
    macro_rules! floats {
        ($number:ty) => {
            each!($number, |old, operand| old + operand, |old, operand| old * operand, |_, old, _, _| old)
        };
    }
    if !datatype.has(operation) {
        return false;
    }
    match datatype {
        Datatype::I8 => integers!(i8),
        Datatype::U8 => integers!(u8),
        Datatype::I16 => integers!(i16),
        Datatype::U16 => integers!(u16),
        Datatype::I32 => integers!(i32),
        Datatype::U32 => integers!(u32),
        Datatype::I64 => integers!(i64),
        Datatype::U64 => integers!(u64),
        Datatype::F32 => floats!(f32),
        Datatype::F64 => floats!(f64),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(operation: Operation, old: i16, operand: i16, comparand: i16) -> i16 {
        let mut target = old.to_ne_bytes();
        assert!(apply(
            operation,
            Datatype::I16,
            &mut target,
            &operand.to_ne_bytes(),
            &comparand.to_ne_bytes()
        ));
        i16::from_ne_bytes(target)
    }

    #[test]
    fn integers() {
        use Operation::*;
        for (operation, expected) in
            [(Min, -7), (Max, 5), (Sum, -2), (Product, -35), (LogicalOr, 1), (LogicalAnd, 1)]
        {
            assert_eq!(one(operation, 5, -7, 0), expected);
        }
        for (operation, expected) in
            [(BitOr, 7), (BitAnd, 1), (BitXor, 6), (LogicalXor, 0), (Read, 5), (Write, 3)]
        {
            assert_eq!(one(operation, 5, 3, 0), expected);
        }
        assert_eq!((one(Sum, i16::MAX, 1, 0), one(SwapMasked, 0b1010, 0b0101, 0b0011)), (i16::MIN, 0b1001));
    }

    /// The comparand stands to the left of the value.
    #[test]
    fn swaps() {
        use Operation::*;
        for (operation, swaps) in [
            (SwapIfEqual, [false, true, false]),
            (SwapIfUnequal, [true, false, true]),
            (SwapIfLessOrEqual, [true, true, false]),
            (SwapIfLess, [true, false, false]),
            (SwapIfGreaterOrEqual, [false, true, true]),
            (SwapIfGreater, [false, false, true]),
        ] {
            for (comparand, is_swapped) in [4, 5, 6].into_iter().zip(swaps) {
                assert_eq!(one(operation, 5, 9, comparand), if is_swapped { 9 } else { 5 }, "{operation:?}");
            }
        }
    }

    #[test]
    fn several_values_and_floats() {
        let bytes = |values: [f64; 2]| values.map(f64::to_ne_bytes).concat();
        let mut target = bytes([1.5, -2.0]);
        assert!(apply(Operation::Sum, Datatype::F64, &mut target, &bytes([0.25, 4.0]), &[]));
        assert_eq!(target, bytes([1.75, 2.0]));
        assert!(!apply(Operation::BitOr, Datatype::F64, &mut target, &bytes([1.0, 1.0]), &[]));
        assert_eq!(target, bytes([1.75, 2.0]));
    }

    #[test]
    fn the_numbers_are_those_of_libfabric() {
        assert!(Operation::ALL.iter().zip(0..).all(|(operation, number)| *operation as u32 == number));
        assert!(Datatype::ALL.iter().zip(0..).all(|(datatype, number)| *datatype as u32 == number));
        assert_eq!((Operation::of(18), Operation::of(19)), (Some(Operation::SwapMasked), None));
        assert_eq!((Datatype::of(9), Datatype::of(10)), (Some(Datatype::F64), None));
    }
}
