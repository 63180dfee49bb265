//! Layout of the work that descriptors post, and of the memory that it names.

use crate::payload::FILL;
use netdyno_measure::layer::LayerError;
use netdyno_stack::vi::{Consumer, Operation, PieceId, Work};

/// Returns an operation's work on `len` bytes from `offset` on in a piece of memory.
pub(super) fn work(
    consumer: &Consumer,
    operation: Operation,
    (piece, offset, len): (PieceId, usize, usize),
    immediate: Option<u32>,
) -> Work {
    let segment = consumer.segment(piece, offset, len);
    let segments = [segment].into_iter().collect();
    Work { operation, immediate, is_fenced: false, segments, len: segment.len }
}

/// Allocates memory, registers it and fills it.
pub(super) fn filled(consumer: &mut Consumer, bytes: usize) -> Result<PieceId, LayerError> {
    let piece = consumer.allocate(bytes).map_err(LayerError::new)?;
    consumer.register(piece, false).map_err(LayerError::new)?;
    consumer.write(piece, 0, &vec![FILL; bytes]);
    Ok(piece)
}
